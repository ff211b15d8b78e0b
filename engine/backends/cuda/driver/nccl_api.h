#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_NCCL_API_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_NCCL_API_H_

#include <nccl.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::cuda {

// What is used of NCCL, which is loaded when it is needed.
struct NcclApi {
  decltype(ncclGetErrorString)* get_error_string;
  decltype(ncclGetLastError)* get_last_error;
  decltype(ncclGetUniqueId)* get_unique_id;
  decltype(ncclCommInitRankConfig)* init_rank;
  decltype(ncclCommAbort)* abort;
  decltype(ncclCommGetAsyncError)* get_async_error;
  decltype(ncclAllReduce)* all_reduce;
  decltype(ncclBroadcast)* broadcast;

  // Loads it, once; UNAVAILABLE where it is not found.
  static absl::StatusOr<const NcclApi*> Load();

  // UNAVAILABLE where another rank, or what leads to it, is lost; FAILED_PRECONDITION where the ranks cannot
  // be one group. OK also of what goes on. `comm` may be null.
  absl::Status Check(ncclResult_t result, absl::string_view call, ncclComm_t comm) const;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_NCCL_API_H_
