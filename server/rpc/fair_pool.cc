#include "server/rpc/fair_pool.h"

#include <utility>

namespace tandem {

FairPool::FairPool(int threads, int most_each) : most_each_(most_each) {
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
  if (stopping_) return;
  Lane& lane = lanes_[user];
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
      task = std::move(lane.tasks.front());
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
