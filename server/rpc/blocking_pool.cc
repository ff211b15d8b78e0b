#include "server/rpc/blocking_pool.h"

#include <utility>

namespace tandem {

BlockingPool::BlockingPool(int threads) {
  MutexLock lock(&stop_mutex_);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

BlockingPool::~BlockingPool() { Stop(); }

void BlockingPool::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  MutexLock lock(&stop_mutex_);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void BlockingPool::Post(absl::AnyInvocable<void()> task) {
  // A task that is dropped goes with the parameter, after the lock: its end may do anything.
  MutexLock lock(&mutex_);
  if (stopping_) return;
  tasks_.push_back(std::move(task));
}

void BlockingPool::Run() {
  for (;;) {
    absl::AnyInvocable<void()> task;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &BlockingPool::HasWork));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace tandem
