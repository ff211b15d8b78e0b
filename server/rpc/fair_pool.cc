#include "server/rpc/fair_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/retry_delay.h"

namespace tandem {
namespace {

// How long a task takes nobody knows; some are done by then.
constexpr absl::Duration kFullDelay = absl::Seconds(2);

}  // namespace

FairPool::FairPool(int threads, int most_each, Room room) : most_each_(most_each), room_(room) {
  MutexLock lock(&stop_mutex_);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

FairPool::~FairPool() { Stop(); }

void FairPool::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  MutexLock lock(&stop_mutex_);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void FairPool::Queue(const std::string& user, const Lane& lane) {
  if (!lane.tasks.empty() && lane.running < most_each_) turns_.push_back(user);
}

void FairPool::Post(const std::string& user, absl::AnyInvocable<void()> task) {
  // A task that is dropped goes with the parameter, after the lock: its end may do anything.
  MutexLock lock(&mutex_);
  if (!stopping_) Add(user, {std::move(task), 0});
}

void FairPool::Offer(const std::string& user, int64_t bytes, absl::AnyInvocable<void(absl::Status)> task) {
  {
    MutexLock lock(&mutex_);
    if (stopping_) return;
    if (HasRoom(user, bytes)) {
      Add(user, {[task = std::move(task)]() mutable { task(absl::OkStatus()); }, bytes});
      return;
    }
  }
  task(WithRetryDelay(
      WithReason(absl::ResourceExhaustedError(absl::StrCat(
                     "of the calls of \"", user,
                     "\" that read or write data, so many wait already that no more are taken (at most ",
                     room_.tasks, ", with ", room_.bytes >> 20, " MiB in all); try again later")),
                 "TOO_MANY_WAITING_CALLS"),
      kFullDelay));
}

bool FairPool::HasRoom(const std::string& user, int64_t bytes) const {
  const auto found = lanes_.find(user);
  if (found == lanes_.end() || found->second.tasks.empty()) return true;
  const Lane& lane = found->second;
  return lane.tasks.size() < static_cast<size_t>(room_.tasks) && bytes <= room_.bytes - lane.bytes;
}

void FairPool::Add(const std::string& user, Task task) {
  Lane& lane = lanes_[user];
  lane.bytes += task.bytes;
  lane.tasks.push_back(std::move(task));
  ++waiting_;
  // Else there is a turn already, or none to be had.
  if (lane.tasks.size() == 1) Queue(user, lane);
}

void FairPool::Run() {
  for (;;) {
    absl::AnyInvocable<void()> task;
    std::string user;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &FairPool::HasWork));
      if (turns_.empty()) return;
      user = std::move(turns_.front());
      turns_.pop_front();
      Lane& lane = lanes_.find(user)->second;
      task = std::move(lane.tasks.front().run);
      lane.bytes -= lane.tasks.front().bytes;
      lane.tasks.pop_front();
      --waiting_;
      ++lane.running;
      Queue(user, lane);
    }
    task();
    // What it held goes while it counts as running.
    task = nullptr;
    MutexLock lock(&mutex_);
    const auto lane = lanes_.find(user);
    // At its share, it had no turn.
    if (lane->second.running-- == most_each_) Queue(user, lane->second);
    if (lane->second.tasks.empty() && lane->second.running == 0) lanes_.erase(lane);
  }
}

}  // namespace tandem
