#include "server/rpc/fair_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/retry_delay.h"

namespace tandem {
namespace {

// Tasks' durations are unknown, so the delay is a guess.
constexpr absl::Duration kFullDelay = absl::Seconds(2);

}  // namespace

FairPool::FairPool(int threads, int most_each, Room room) : most_each_(most_each), room_(room) {
  MutexLock lock(&stop_mutex_);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

FairPool::~FairPool() { Stop(); }

void FairPool::Drop() {
  // Destroyed after the lock, because a task's destructor may run any code.
  std::vector<std::deque<Waiting>> dropped;
  MutexLock lock(&mutex_);
  stopping_ = true;
  turns_.clear();
  for (auto& [user, lane] : lanes_) dropped.push_back(std::exchange(lane.tasks, {}));
}

void FairPool::DropUnwanted() {
  std::vector<Waiting> unwanted;
  {
    MutexLock lock(&mutex_);
    for (auto next = lanes_.begin(); next != lanes_.end();) {
      const auto lane = next++;
      std::deque<Waiting>& tasks = lane->second.tasks;
      const auto first = std::stable_partition(tasks.begin(), tasks.end(), [](const Waiting& waiting) {
        return waiting.interest == nullptr || !waiting.interest->is_lost();
      });
      if (first == tasks.end()) continue;
      std::move(first, tasks.end(), std::back_inserter(unwanted));
      tasks.erase(first, tasks.end());
      if (!tasks.empty()) continue;
      std::erase(turns_, lane->first);
      if (lane->second.running == 0) lanes_.erase(lane);
    }
  }
  // Unlocked, as in Drop.
  for (Waiting& waiting : unwanted) waiting.task(absl::CancelledError("the client cancelled the call"));
}

void FairPool::Stop() {
  Drop();
  MutexLock lock(&stop_mutex_);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void FairPool::Queue(const std::string& user, const Lane& lane) {
  if (!stopping_ && !lane.tasks.empty() && lane.running < most_each_) turns_.push_back(user);
}

void FairPool::Post(const std::string& user, absl::AnyInvocable<void()> task) {
  // A dropped task is destroyed with the parameter, after the lock, because its destructor may run any code.
  MutexLock lock(&mutex_);
  if (!stopping_) {
    Add(user, {.task = [task = std::move(task)](absl::StatusOr<Hold>) mutable { task(); },
               .hold = {},
               .interest = nullptr});
  }
}

void FairPool::Offer(const std::string& user, int64_t bytes, Task task,
                     std::shared_ptr<const CallInterest> interest) {
  {
    MutexLock lock(&mutex_);
    if (stopping_) return;
    const auto lane = lanes_.find(user);
    const size_t waiting = lane == lanes_.end() ? 0 : lane->second.tasks.size();
    if (waiting < static_cast<size_t>(room_.tasks)) {
      absl::StatusOr<Hold> hold = Take(user, Kind::kRequest, bytes);
      if (hold.ok()) {
        Add(user, {.task = std::move(task), .hold = *std::move(hold), .interest = std::move(interest)});
        return;
      }
    }
  }
  task(NoRoom(user));
}

absl::StatusOr<FairPool::Hold> FairPool::HoldMore(const std::string& user, int64_t bytes) {
  return Take(user, Kind::kMore, bytes);
}

absl::StatusOr<FairPool::Hold> FairPool::Take(const std::string& user, Kind kind, int64_t bytes) {
  if (bytes <= room_.small) kind = Kind::kSmall;
  const int64_t most = kind == Kind::kSmall ? room_.small_bytes : room_.bytes;
  if (!ledger_->Take(user, kind, bytes, most)) return NoRoom(user);
  return Hold(ledger_, user, kind, bytes);
}

absl::Status FairPool::NoRoom(const std::string& user) const {
  return WithRetryDelay(
      WithReason(absl::ResourceExhaustedError(absl::StrCat(
                     "cannot take more calls of \"", user, "\": ", room_.tasks,
                     " calls of one user may wait, with ", room_.bytes >> 20, " MiB of large requests and ",
                     room_.small_bytes >> 20, " MiB of small requests; wait for some answers")),
                 "TOO_MANY_WAITING_CALLS"),
      kFullDelay);
}

bool FairPool::Ledger::Take(const std::string& user, Kind kind, int64_t bytes, int64_t most) {
  MutexLock lock(&mutex_);
  Held& held = held_[{user, kind}];
  if (held.holds > 0 && bytes > most - held.bytes) return false;
  ++held.holds;
  held.bytes += bytes;
  return true;
}

void FairPool::Ledger::Give(const std::string& user, Kind kind, int64_t bytes) {
  MutexLock lock(&mutex_);
  const auto found = held_.find({user, kind});
  found->second.bytes -= bytes;
  if (--found->second.holds == 0) held_.erase(found);
}

void FairPool::Hold::Release() {
  if (ledger_ == nullptr) return;
  ledger_->Give(user_, kind_, bytes_);
  ledger_ = nullptr;
}

void FairPool::Add(const std::string& user, Waiting waiting) {
  Lane& lane = lanes_[user];
  lane.tasks.push_back(std::move(waiting));
  // Otherwise the user already has a turn, or cannot get one.
  if (lane.tasks.size() == 1) Queue(user, lane);
}

void FairPool::Run() {
  for (;;) {
    Waiting next;
    std::string user;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &FairPool::HasWork));
      if (turns_.empty()) return;
      user = std::move(turns_.front());
      turns_.pop_front();
      Lane& lane = lanes_.find(user)->second;
      next = std::move(lane.tasks.front());
      lane.tasks.pop_front();
      ++lane.running;
      Queue(user, lane);
    }
    next.task(std::move(next.hold));
    // Destroy the task while it still counts as running.
    next = {};
    MutexLock lock(&mutex_);
    const auto lane = lanes_.find(user);
    // A user at its share has no turn, so queue one now.
    if (lane->second.running-- == most_each_) Queue(user, lane->second);
    if (lane->second.tasks.empty() && lane->second.running == 0) lanes_.erase(lane);
  }
}

}  // namespace tandem
