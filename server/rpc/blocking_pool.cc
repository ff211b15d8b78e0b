#include "server/rpc/blocking_pool.h"

#include <utility>

namespace tandem {

BlockingPool::BlockingPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

BlockingPool::~BlockingPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void BlockingPool::Post(absl::AnyInvocable<void()> task) {
  MutexLock lock(&mutex_);
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
