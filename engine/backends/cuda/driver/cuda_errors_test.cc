#include "engine/backends/cuda/driver/cuda_errors.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

CudaFailure Failure(int error, absl::string_view name) { return {error, name, "what it is", "cudaCall"}; }

TEST(CudaErrorsTest, FaultsAfterWhichNothingWorksAreTold) {
  // driver_types.h of CUDA 13.0 says that a process must end after most of these errors. The other errors are
  // failures of the GPU.
  for (const int error : {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911, 999}) {
    const absl::Status status = StatusOf(Failure(error, "cudaErrorSome"));
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << error;
    // The text by which a worker recognises them.
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith("cuda: cudaCall: cudaErrorSome: what it is"), HasSubstr("has to end")))
        << error;
  }
}

TEST(CudaErrorsTest, OthersAreErrorsOfTheCall) {
  // cudaErrorInvalidValue, cudaErrorLaunchOutOfResources, cudaErrorStreamCaptureUnsupported.
  for (const int error : {1, 701, 900}) {
    const absl::Status status = StatusOf(Failure(error, "cudaErrorSome"));
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << error;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("cudaErrorSome"), Not(HasSubstr("cuda: "))));
  }
  EXPECT_EQ(StatusOf(Failure(2, "cudaErrorMemoryAllocation")).code(), absl::StatusCode::kResourceExhausted);
}

TEST(CudaErrorsTest, APeerThatIsNotReachedIsNoError) {
  for (const int reached : {0, 704}) EXPECT_TRUE(IsPeerReached(Failure(reached, "cudaErrorSome")).value());
  // cudaErrorPeerAccessUnsupported, cudaErrorTooManyPeers, cudaErrorMemoryAllocation.
  for (const int other : {217, 711, 2}) EXPECT_FALSE(IsPeerReached(Failure(other, "cudaErrorSome")).value());
  EXPECT_EQ(IsPeerReached(Failure(700, "cudaErrorSome")).status().code(), absl::StatusCode::kInternal);
}

std::string Why(int error, const CudaSystem& system) {
  const absl::Status status = WhyNoGpu(Failure(error, "cudaErrorSome"), system);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  return std::string(status.message());
}

TEST(CudaErrorsTest, NoGpuIsExplained) {
  EXPECT_THAT(Why(35, {.driver_version = 0, .runtime_version = 13000, .visible_devices = "0"}),
              AllOf(HasSubstr("no driver"), HasSubstr("libcuda.so.1"), HasSubstr("CUDA 13")));
  EXPECT_THAT(Why(35, {.driver_version = 12040, .runtime_version = 13000, .visible_devices = {}}),
              AllOf(HasSubstr("up to 12.4"), HasSubstr("CUDA 13.0"), HasSubstr("newer driver")));
  for (const int error : {0, 100}) {
    EXPECT_THAT(Why(error, {.driver_version = 13000, .runtime_version = 13000, .visible_devices = ""}),
                HasSubstr("CUDA_VISIBLE_DEVICES is ''"));
    EXPECT_THAT(Why(error, {.driver_version = 13000, .runtime_version = 13000, .visible_devices = {}}),
                AllOf(HasSubstr("nvidia-smi"), Not(HasSubstr("CUDA_VISIBLE_DEVICES"))));
  }
  EXPECT_THAT(Why(803, {.driver_version = 13000, .runtime_version = 13000, .visible_devices = {}}),
              HasSubstr("start the machine again"));
  EXPECT_THAT(Why(3, {.driver_version = 13000, .runtime_version = 13000, .visible_devices = {}}),
              AllOf(HasSubstr("cudaErrorSome: what it is"), HasSubstr("nvidia-smi")));
}

}  // namespace
}  // namespace tandem::cuda
