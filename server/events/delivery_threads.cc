#include "server/events/delivery_threads.h"

#include <utility>

namespace tandem {

DeliveryThreads::DeliveryThreads(int threads) {
  MutexLock lock(&stop_mutex_);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

DeliveryThreads::~DeliveryThreads() { Stop(); }

bool DeliveryThreads::Enqueue(std::shared_ptr<Deliverer> deliverer) {
  MutexLock lock(&mutex_);
  if (stopping_) return false;
  queue_.push_back(std::move(deliverer));
  return true;
}

void DeliveryThreads::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  MutexLock lock(&stop_mutex_);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void DeliveryThreads::Run() {
  while (true) {
    std::shared_ptr<Deliverer> deliverer;
    {
      MutexLock lock(&mutex_);
      const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !queue_.empty();
      };
      mutex_.Await(absl::Condition(&has_work));
      if (queue_.empty()) return;
      deliverer = std::move(queue_.front());
      queue_.pop_front();
    }
    deliverer->Deliver();
  }
}

}  // namespace tandem
