#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/backends/cuda/driver/collective.h"
#include "engine/backends/cuda/driver/emulated_stream.h"
#include "engine/backends/cuda/kernels/ranks.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"

// Threads of a process in place of NCCL, for the emulation.

namespace tandem::cuda {
namespace {

struct Group {
  explicit Group(int world_size) : ranks(world_size) {}
  // A rank's data for the running call.
  struct Rank {
    void* data = nullptr;
    std::shared_ptr<PendingWork> pending;
    bool aborted = false;
  };
  Mutex mutex;
  std::vector<Rank> ranks ABSL_GUARDED_BY(mutex);
  int joined ABSL_GUARDED_BY(mutex) = 0;
  int arrived ABSL_GUARDED_BY(mutex) = 0;
  // A rank was aborted. No call can end any more, because the others are not told.
  bool broken ABSL_GUARDED_BY(mutex) = false;
};

// Groups that not all ranks have joined yet, by id.
class Lobby {
 public:
  static Lobby& OfProcess() {
    static Lobby& lobby = *new Lobby();
    return lobby;
  }
  std::string NewId() {
    MutexLock lock(&mutex_);
    std::string id = absl::StrCat("group ", ++made_);
    id.resize(kCollectiveIdBytes);
    return id;
  }
  std::shared_ptr<Group> Enter(const std::string& id, int world_size) {
    MutexLock lock(&mutex_);
    auto& [group, ranks] = groups_[id];
    if (group == nullptr) group = std::make_shared<Group>(world_size);
    const std::shared_ptr<Group> entered = group;
    if (++ranks == world_size) groups_.erase(id);
    return entered;
  }

 private:
  Mutex mutex_;
  int64_t made_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::pair<std::shared_ptr<Group>, int>> groups_ ABSL_GUARDED_BY(mutex_);
};

class ThreadCollective final : public Collective {
 public:
  ThreadCollective(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}

  absl::Status AllReduce(void* data, int64_t elements, DType dtype, bool average, Stream stream) override {
    return Put(data, stream, [&](const std::vector<Group::Rank>& all) {
      RankBuffers buffers;
      for (const Group::Rank& one : all) buffers.data[buffers.count++] = one.data;
      // At once, because all ranks' streams wait for it.
      SumRanks(buffers, dtype, 0, elements, average ? 1.0 / static_cast<double>(all.size()) : 1.0, nullptr);
    });
  }
  absl::Status Broadcast(void* data, int64_t elements, DType dtype, int root, Stream stream) override {
    return Put(data, stream, [&](const std::vector<Group::Rank>& all) {
      for (const Group::Rank& one : all) {
        if (one.data != all[root].data) std::memcpy(one.data, all[root].data, elements * SizeOf(dtype));
      }
    });
  }
  absl::Status Check() override {
    MutexLock lock(&group_->mutex);
    return group_->ranks[rank_].aborted ? Aborted() : absl::OkStatus();
  }
  void Abort() override {
    MutexLock lock(&group_->mutex);
    group_->broken = true;
    Group::Rank& own = group_->ranks[rank_];
    own.aborted = true;
    if (own.pending != nullptr) own.pending->End();
  }

  // Returns when all ranks have called it.
  absl::Status Join(absl::Duration timeout) {
    Group& group = *group_;
    MutexLock lock(&group.mutex);
    ++group.joined;
    const auto all_here = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return group.joined == static_cast<int>(group.ranks.size());
    };
    if (group.mutex.AwaitWithTimeout(absl::Condition(&all_here), timeout)) return absl::OkStatus();
    return absl::DeadlineExceededError("not all ranks have come");
  }

 private:
  // Puts a call into the stream. The last rank to arrive does `work` for all.
  template <typename Work>
  absl::Status Put(void* data, Stream stream, const Work& work) {
    if (stream->record != nullptr) {
      return absl::UnimplementedError("the emulation records no calls of groups");
    }
    stream->Await();
    Group& group = *group_;
    MutexLock lock(&group.mutex);
    Group::Rank& own = group.ranks[rank_];
    if (own.aborted) return Aborted();
    own.data = data;
    own.pending = std::make_shared<PendingWork>();
    stream->pending = own.pending;
    if (++group.arrived < static_cast<int>(group.ranks.size()) || group.broken) return absl::OkStatus();
    work(group.ranks);
    group.arrived = 0;
    for (const Group::Rank& one : group.ranks) one.pending->End();
    return absl::OkStatus();
  }

  static absl::Status Aborted() { return absl::AbortedError("the group was aborted"); }

  const std::shared_ptr<Group> group_;
  const int rank_;
};

}  // namespace

absl::Status CheckCollectives() { return absl::OkStatus(); }

absl::StatusOr<std::string> MakeCollectiveId() { return Lobby::OfProcess().NewId(); }

absl::StatusOr<std::unique_ptr<Collective>> JoinCollective(const std::string& id, int rank, int world_size,
                                                           absl::Duration timeout) {
  if (world_size > RankBuffers::kMost) {
    return absl::UnimplementedError(absl::StrCat("the emulation of a group of ", world_size));
  }
  auto collective = std::make_unique<ThreadCollective>(Lobby::OfProcess().Enter(id, world_size), rank);
  TANDEM_RETURN_IF_ERROR(collective->Join(timeout));
  return std::unique_ptr<Collective>(std::move(collective));
}

}  // namespace tandem::cuda
