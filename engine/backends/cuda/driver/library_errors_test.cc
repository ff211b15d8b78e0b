// Tests the statuses of the libraries' errors, with functions in place of the libraries.

#include <string>

#include "engine/backends/cuda/driver/cublas_api.h"
#include "engine/backends/cuda/driver/cudnn_api.h"
#include "engine/backends/cuda/driver/nccl_api.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cuda {
namespace {

using ::testing::EndsWith;
using ::testing::Eq;

std::string Text(const absl::Status& status) { return std::string(status.message()); }

TEST(LibraryErrorsTest, OfCudnn) {
  CudnnApi api = {};
  api.get_error_string = [](cudnnStatus_t) { return "what it is"; };
  api.get_last_error_string = [](char* text, size_t) { *text = 0; };
  EXPECT_TRUE(api.Check(CUDNN_STATUS_SUCCESS, "call").ok());
  const auto code = [&](cudnnStatus_t status) { return api.Check(status, "call").code(); };
  // All statuses that mean missing support, so that another way is searched.
  for (const cudnnStatus_t status :
       {CUDNN_STATUS_NOT_SUPPORTED, CUDNN_STATUS_NOT_SUPPORTED_SHAPE, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
        CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH}) {
    EXPECT_EQ(code(status), absl::StatusCode::kUnimplemented) << status;
  }
  for (const cudnnStatus_t status : {CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                                     CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED}) {
    EXPECT_EQ(code(status), absl::StatusCode::kResourceExhausted) << status;
  }
  for (const cudnnStatus_t status : {CUDNN_STATUS_NOT_INITIALIZED, CUDNN_STATUS_BAD_PARAM,
                                     CUDNN_STATUS_INTERNAL_ERROR, CUDNN_STATUS_EXECUTION_FAILED}) {
    EXPECT_EQ(code(status), absl::StatusCode::kInternal) << status;
  }
  EXPECT_EQ(Text(api.Check(CUDNN_STATUS_BAD_PARAM, "call")), "cudnn: call: what it is");
  api.get_last_error_string = [](char* text, size_t) {
    text[0] = 'w';
    text[1] = 0;
  };
  EXPECT_EQ(Text(api.Check(CUDNN_STATUS_BAD_PARAM, "call")), "cudnn: call: what it is: w");
}

TEST(LibraryErrorsTest, OfCublas) {
  CublasApi api = {};
  api.status_string = [](cublasStatus_t) { return "what it is"; };
  EXPECT_TRUE(api.Check(CUBLAS_STATUS_SUCCESS, "call").ok());
  const auto code = [&](cublasStatus_t status) { return api.Check(status, "call").code(); };
  EXPECT_EQ(code(CUBLAS_STATUS_NOT_SUPPORTED), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code(CUBLAS_STATUS_ALLOC_FAILED), absl::StatusCode::kResourceExhausted);
  for (const cublasStatus_t status :
       {CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_ARCH_MISMATCH,
        CUBLAS_STATUS_EXECUTION_FAILED, CUBLAS_STATUS_INTERNAL_ERROR}) {
    EXPECT_EQ(code(status), absl::StatusCode::kInternal) << status;
  }
  EXPECT_EQ(Text(api.Check(CUBLAS_STATUS_INVALID_VALUE, "call")), "cublasLt: call: what it is");
}

TEST(LibraryErrorsTest, OfNccl) {
  NcclApi api = {};
  api.get_error_string = [](ncclResult_t) { return "what it is"; };
  api.get_last_error = [](ncclComm_t) -> const char* { return nullptr; };
  const auto code = [&](ncclResult_t result) { return api.Check(result, "call", nullptr).code(); };
  for (const ncclResult_t result : {ncclSuccess, ncclInProgress}) {
    EXPECT_EQ(code(result), absl::StatusCode::kOk);
  }
  // A lost rank may return with its worker.
  for (const ncclResult_t result : {ncclRemoteError, ncclSystemError}) {
    EXPECT_EQ(code(result), absl::StatusCode::kUnavailable) << result;
  }
  for (const ncclResult_t result : {ncclInvalidArgument, ncclInvalidUsage}) {
    EXPECT_EQ(code(result), absl::StatusCode::kFailedPrecondition) << result;
  }
  for (const ncclResult_t result : {ncclUnhandledCudaError, ncclInternalError}) {
    EXPECT_EQ(code(result), absl::StatusCode::kInternal) << result;
  }
  EXPECT_THAT(Text(api.Check(ncclInternalError, "call", nullptr)), Eq("nccl: call: what it is"));
  api.get_last_error = [](ncclComm_t) { return "more of it"; };
  EXPECT_THAT(Text(api.Check(ncclInternalError, "call", nullptr)), EndsWith("what it is: more of it"));
}

// A communicator whose finalization takes some polls.
int polls = 0;
int polls_until_end = 0;
ncclResult_t end_state = ncclSuccess;
int destroyed = 0;

TEST(NcclApiTest, LeavesAGroupAfterItsWork) {
  NcclApi api = {};
  api.get_error_string = [](ncclResult_t) { return "what it is"; };
  api.get_last_error = [](ncclComm_t) -> const char* { return nullptr; };
  api.finalize = [](ncclComm_t) { return ncclInProgress; };
  api.get_async_error = [](ncclComm_t, ncclResult_t* state) {
    *state = ++polls < polls_until_end ? ncclInProgress : end_state;
    return ncclSuccess;
  };
  api.destroy = [](ncclComm_t) {
    EXPECT_EQ(polls, polls_until_end);
    ++destroyed;
    return ncclInProgress;
  };
  polls_until_end = 3;
  EXPECT_TRUE(api.Leave(nullptr, absl::Minutes(1)).ok());
  EXPECT_EQ(destroyed, 1);
  // After an error, or without an end, the communicator stays for an abort.
  polls = 0;
  end_state = ncclRemoteError;
  EXPECT_TRUE(absl::IsUnavailable(api.Leave(nullptr, absl::Minutes(1))));
  polls_until_end = 1 << 30;
  EXPECT_TRUE(absl::IsDeadlineExceeded(api.Leave(nullptr, absl::Milliseconds(2))));
  api.finalize = [](ncclComm_t) { return ncclInvalidArgument; };
  EXPECT_TRUE(absl::IsFailedPrecondition(api.Leave(nullptr, absl::Minutes(1))));
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace tandem::cuda
