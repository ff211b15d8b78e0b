#ifndef TANDEM_SERVER_EVENTS_DELIVERY_THREADS_H_
#define TANDEM_SERVER_EVENTS_DELIVERY_THREADS_H_

#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "engine/base/mutex.h"

namespace tandem {

// Something with entries to deliver.
class Deliverer {
 public:
  virtual ~Deliverer() = default;
  virtual void Deliver() = 0;
};

// The threads that read logs and run watchers' callbacks, so that publishing never does. Thread-safe.
class DeliveryThreads {
 public:
  explicit DeliveryThreads(int threads);
  // Runs what is queued, then ends.
  ~DeliveryThreads();

  // Has Deliver() called soon. Returns false where the threads have ended: then the caller must do it.
  bool Enqueue(std::shared_ptr<Deliverer> deliverer);

  // Runs what is queued and ends the threads. Not from one of them.
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
