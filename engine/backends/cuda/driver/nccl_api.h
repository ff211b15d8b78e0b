#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_NCCL_API_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_NCCL_API_H_

#include <nccl.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem::cuda {

// The functions of NCCL that the backend uses. The library is loaded on demand.
struct NcclApi {
  decltype(ncclGetErrorString)* get_error_string;
  decltype(ncclGetLastError)* get_last_error;
  decltype(ncclGetUniqueId)* get_unique_id;
  decltype(ncclCommInitRankConfig)* init_rank;
  decltype(ncclCommFinalize)* finalize;
  decltype(ncclCommDestroy)* destroy;
  decltype(ncclCommAbort)* abort;
  decltype(ncclCommGetAsyncError)* get_async_error;
  decltype(ncclAllReduce)* all_reduce;
  decltype(ncclBroadcast)* broadcast;

  // Loads the library once. UNAVAILABLE if it is not found.
  static absl::StatusOr<const NcclApi*> Load();

  // Turns an NCCL result into a status. UNAVAILABLE if another rank or its connection is lost,
  // FAILED_PRECONDITION if the ranks cannot form a group. OK also for a running operation. `comm` may be
  // null.
  absl::Status Check(ncclResult_t result, absl::string_view call, ncclComm_t comm) const;

  // Frees a communicator that does not block, after all of its work and all transfers to other ranks. Returns
  // DEADLINE_EXCEEDED if these do not end within `time_limit`. If not OK, `comm` is still there, and must be
  // aborted.
  absl::Status Leave(ncclComm_t comm, absl::Duration time_limit) const;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_NCCL_API_H_
