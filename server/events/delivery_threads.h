#ifndef TANDEM_SERVER_EVENTS_DELIVERY_THREADS_H_
#define TANDEM_SERVER_EVENTS_DELIVERY_THREADS_H_

#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "engine/base/mutex.h"

namespace tandem {

// An object with entries to deliver.
class Deliverer {
 public:
  virtual ~Deliverer() = default;
  virtual void Deliver() = 0;
};

// The threads that read logs and run watchers' callbacks, so that publishers never block. Thread-safe.
class DeliveryThreads {
 public:
  explicit DeliveryThreads(int threads);
  // Calls Stop.
  ~DeliveryThreads();

  // Calls deliverer->Deliver() soon, on a thread. Returns false after Stop: the caller must then call Deliver
  // itself.
  bool Enqueue(std::shared_ptr<Deliverer> deliverer);

  // Finishes the queue and ends the threads. Must not be called on one of the threads.
  void Stop();

 private:
  void Run();

  Mutex mutex_;
  std::deque<std::shared_ptr<Deliverer>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  Mutex stop_mutex_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_EVENTS_DELIVERY_THREADS_H_
