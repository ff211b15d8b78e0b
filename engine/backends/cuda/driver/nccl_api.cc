#include "engine/backends/cuda/driver/nccl_api.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/driver/library.h"
#include "engine/base/clock.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

// Between two polls.
constexpr std::chrono::microseconds kPause(100);

absl::StatusOr<const NcclApi*> LoadOnce() {
  TANDEM_ASSIGN_OR_RETURN(const Library library, Library::Open("NCCL", {"libnccl.so.2"}));
  auto api = std::make_unique<NcclApi>();
  TANDEM_RETURN_IF_ERROR(library.Find("ncclGetErrorString", &api->get_error_string));
  TANDEM_RETURN_IF_ERROR(library.Find("ncclGetLastError", &api->get_last_error));
  TANDEM_RETURN_IF_ERROR(library.Find("ncclGetUniqueId", &api->get_unique_id));
  TANDEM_RETURN_IF_ERROR(library.Find("ncclCommInitRankConfig", &api->init_rank));
  TANDEM_RETURN_IF_ERROR(library.Find("ncclCommFinalize", &api->finalize));
  TANDEM_RETURN_IF_ERROR(library.Find("ncclCommDestroy", &api->destroy));
  TANDEM_RETURN_IF_ERROR(library.Find("ncclCommAbort", &api->abort));
  TANDEM_RETURN_IF_ERROR(library.Find("ncclCommGetAsyncError", &api->get_async_error));
  TANDEM_RETURN_IF_ERROR(library.Find("ncclAllReduce", &api->all_reduce));
  TANDEM_RETURN_IF_ERROR(library.Find("ncclBroadcast", &api->broadcast));
  return api.release();
}

}  // namespace

absl::StatusOr<const NcclApi*> NcclApi::Load() {
  static const absl::StatusOr<const NcclApi*>& loaded = *new absl::StatusOr<const NcclApi*>(LoadOnce());
  return loaded;
}

absl::Status NcclApi::Check(ncclResult_t result, absl::string_view call, ncclComm_t comm) const {
  if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
  const char* details = get_last_error(comm);
  const std::string message =
      absl::StrCat("nccl: ", call, ": ", get_error_string(result),
                   details == nullptr || details[0] == 0 ? "" : absl::StrCat(": ", details));
  switch (result) {
    case ncclRemoteError:
    case ncclSystemError:
      return absl::UnavailableError(message);
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      return absl::FailedPreconditionError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::Status NcclApi::Leave(ncclComm_t comm, absl::Duration time_limit) const {
  const absl::Duration deadline = Clock::Real()->Elapsed() + time_limit;
  ncclResult_t state = finalize(comm);
  while (state == ncclInProgress) {
    if (Clock::Real()->Elapsed() > deadline) {
      return absl::DeadlineExceededError("nccl: ncclCommFinalize: work of the group does not end");
    }
    std::this_thread::sleep_for(kPause);
    TANDEM_RETURN_IF_ERROR(Check(get_async_error(comm, &state), "ncclCommGetAsyncError", comm));
  }
  TANDEM_RETURN_IF_ERROR(Check(state, "ncclCommFinalize", comm));
  // From here on the communicator is NCCL's own, also after an error.
  (void)destroy(comm);
  return absl::OkStatus();
}

}  // namespace tandem::cuda
