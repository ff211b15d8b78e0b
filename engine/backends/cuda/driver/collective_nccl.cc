#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/driver/collective.h"
#include "engine/backends/cuda/driver/nccl_api.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

// The time for the end of a group's work after the last call.
constexpr absl::Duration kMostLeaving = absl::Seconds(5);

static_assert(sizeof(ncclUniqueId) == kCollectiveIdBytes);

ncclDataType_t ToNccl(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ncclFloat32;
    case DType::kFloat64:
      return ncclFloat64;
    case DType::kBFloat16:
      return ncclBfloat16;
    case DType::kFloat16:
      return ncclFloat16;
    case DType::kInt32:
      return ncclInt32;
    case DType::kInt64:
      return ncclInt64;
    case DType::kUInt8:
      return ncclUint8;
  }
  return ncclUint8;
}

class NcclCollective final : public Collective {
 public:
  explicit NcclCollective(const NcclApi& api) : api_(api) {}
  // An abort could cut off transfers that other ranks still await. So it is used only after an error, an
  // abort of the group, or work that does not end.
  ~NcclCollective() override {
    const absl::StatusOr<bool> in_progress = State("a collective");
    if (in_progress.ok() && !*in_progress) {
      MutexLock lock(&mutex_);
      if (api_.Leave(comm_, kMostLeaving).ok()) comm_ = nullptr;
    }
    Abort();
  }

  absl::Status Join(const ncclUniqueId& id, int rank, int world_size, absl::Duration timeout) {
    const absl::Duration deadline = Clock::Real()->Elapsed() + timeout;
    {
      MutexLock lock(&mutex_);
      // Calls must not block, so that an abort can reach them.
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      TANDEM_RETURN_IF_ERROR(api_.Check(api_.init_rank(&comm_, world_size, id, rank, &config),
                                        "ncclCommInitRankConfig", nullptr));
    }
    return Settle("ncclCommInitRankConfig", deadline);
  }

  absl::Status AllReduce(void* data, int64_t elements, DType dtype, bool average, Stream stream) override {
    return Call("ncclAllReduce", [&](ncclComm_t comm) {
      return api_.all_reduce(data, data, static_cast<size_t>(elements), ToNccl(dtype),
                             average ? ncclAvg : ncclSum, comm, stream);
    });
  }

  absl::Status Broadcast(void* data, int64_t elements, DType dtype, int root, Stream stream) override {
    return Call("ncclBroadcast", [&](ncclComm_t comm) {
      return api_.broadcast(data, data, static_cast<size_t>(elements), ToNccl(dtype), root, comm, stream);
    });
  }

  absl::Status Check() override { return State("a collective").status(); }

  void Abort() override {
    MutexLock lock(&mutex_);
    if (comm_ != nullptr) api_.abort(comm_);
    comm_ = nullptr;
  }

 private:
  template <typename Function>
  absl::Status Call(const char* name, const Function& function) {
    {
      MutexLock lock(&mutex_);
      if (comm_ == nullptr) return Aborted();
      TANDEM_RETURN_IF_ERROR(api_.Check(function(comm_), name, comm_));
    }
    return Settle(name, absl::InfiniteDuration());
  }

  // Waits until a non-blocking call has done its part on the host.
  absl::Status Settle(const char* name, absl::Duration deadline) {
    while (true) {
      TANDEM_ASSIGN_OR_RETURN(const bool in_progress, State(name));
      if (!in_progress) return absl::OkStatus();
      if (Clock::Real()->Elapsed() > deadline) {
        return absl::DeadlineExceededError(absl::StrCat("nccl: ", name, ": not all ranks have come"));
      }
      std::this_thread::yield();
    }
  }

  // Returns whether the last call is still running on the host.
  absl::StatusOr<bool> State(const char* name) {
    MutexLock lock(&mutex_);
    if (comm_ == nullptr) return Aborted();
    ncclResult_t state = ncclSuccess;
    TANDEM_RETURN_IF_ERROR(api_.Check(api_.get_async_error(comm_, &state), "ncclCommGetAsyncError", comm_));
    TANDEM_RETURN_IF_ERROR(api_.Check(state, name, comm_));
    return state == ncclInProgress;
  }

  static absl::Status Aborted() { return absl::AbortedError("nccl: the group was aborted"); }

  const NcclApi& api_;
  Mutex mutex_;
  ncclComm_t comm_ ABSL_GUARDED_BY(mutex_) = nullptr;  // Null after an abort or the end.
};

}  // namespace

absl::Status CheckCollectives() { return NcclApi::Load().status(); }

absl::StatusOr<std::string> MakeCollectiveId() {
  TANDEM_ASSIGN_OR_RETURN(const NcclApi* api, NcclApi::Load());
  ncclUniqueId id;
  TANDEM_RETURN_IF_ERROR(api->Check(api->get_unique_id(&id), "ncclGetUniqueId", nullptr));
  return std::string(id.internal, sizeof(id.internal));
}

absl::StatusOr<std::unique_ptr<Collective>> JoinCollective(const std::string& id, int rank, int world_size,
                                                           absl::Duration timeout) {
  TANDEM_ASSIGN_OR_RETURN(const NcclApi* api, NcclApi::Load());
  ncclUniqueId unique;
  if (id.size() != sizeof(unique.internal)) {
    return absl::InvalidArgumentError(absl::StrCat("nccl: an id of ", id.size(), " bytes"));
  }
  std::memcpy(unique.internal, id.data(), id.size());
  auto collective = std::make_unique<NcclCollective>(*api);
  TANDEM_RETURN_IF_ERROR(collective->Join(unique, rank, world_size, timeout));
  return std::unique_ptr<Collective>(std::move(collective));
}

}  // namespace tandem::cuda
