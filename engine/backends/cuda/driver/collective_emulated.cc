#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/backends/cuda/driver/collective.h"
#include "engine/backends/cuda/kernels/ranks.h"
#include "engine/base/mutex.h"

// Threads of one process in NCCL's place, for the emulation.

namespace tandem::cuda {
namespace {

struct Group {
  explicit Group(int world_size) : data(world_size) {}
  Mutex mutex;
  std::vector<void*> data ABSL_GUARDED_BY(mutex);  // By rank, of the call that is going on.
  int arrived ABSL_GUARDED_BY(mutex) = 0;
  int64_t calls ABSL_GUARDED_BY(mutex) = 0;  // Of those that are over.
  bool aborted ABSL_GUARDED_BY(mutex) = false;
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
    return Meet(data, [&](const std::vector<void*>& all) {
      RankBuffers buffers;
      for (void* one : all) buffers.data[buffers.count++] = one;
      SumRanks(buffers, dtype, 0, elements, average ? 1.0 / static_cast<double>(all.size()) : 1.0, stream);
    });
  }
  absl::Status Broadcast(void* data, int64_t elements, DType dtype, int root, Stream /*stream*/) override {
    return Meet(data, [&](const std::vector<void*>& all) {
      for (void* one : all) {
        if (one != all[root]) std::memcpy(one, all[root], elements * SizeOf(dtype));
      }
    });
  }
  absl::Status Check() override { return absl::OkStatus(); }
  void Abort() override {
    MutexLock lock(&group_->mutex);
    group_->aborted = true;
  }

  // Returns when all ranks are here; the last of them does `work`.
  template <typename Work>
  absl::Status Meet(void* data, const Work& work, absl::Duration timeout = absl::InfiniteDuration()) {
    Group& group = *group_;
    MutexLock lock(&group.mutex);
    const int64_t call = group.calls;
    group.data[rank_] = data;
    if (++group.arrived == static_cast<int>(group.data.size()) && !group.aborted) {
      work(group.data);
      group.arrived = 0;
      ++group.calls;
      return absl::OkStatus();
    }
    const auto over = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return group.calls > call || group.aborted; };
    const bool met = group.mutex.AwaitWithTimeout(absl::Condition(&over), timeout);
    if (group.calls > call) return absl::OkStatus();
    return met ? absl::AbortedError("the group was aborted")
               : absl::DeadlineExceededError("not all ranks have come");
  }

 private:
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
  if (absl::Status status = collective->Meet(
          nullptr, [](const std::vector<void*>&) {}, timeout);
      !status.ok()) {
    return status;
  }
  return std::unique_ptr<Collective>(std::move(collective));
}

}  // namespace tandem::cuda
