#ifndef TANDEM_SERVER_EVENTS_SUBSCRIPTION_H_
#define TANDEM_SERVER_EVENTS_SUBSCRIPTION_H_

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "server/store/records.h"

namespace tandem {

template <typename Item>
class SubscriptionCore;

// One watcher's way through a log: first what is there, then what comes, each entry once and in order.
// Made by EventHub. Thread-safe, but only one Next may be outstanding.
//
// A stream reactor pulls: Next in the constructor and in OnWriteDone, StartWrite or Finish in the callback,
// Cancel in OnCancel.
template <typename Item>
class Subscription {
 public:
  // An entry; a null pointer: the log has ended (its last entry was given before); or why no entry will come:
  // NOT_FOUND: there is no such job, or it was deleted. OUT_OF_RANGE: the position asked for is ahead of the
  // log. UNAVAILABLE: the hub was closed. CANCELLED: Cancel was called. After a null or an error nothing else
  // comes.
  using Result = absl::StatusOr<std::shared_ptr<const Item>>;
  using Callback = absl::AnyInvocable<void(Result)>;

  explicit Subscription(std::shared_ptr<SubscriptionCore<Item>> core);
  // Drops an outstanding callback without calling it; waits for one that runs on another thread.
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  // Has `callback` called with the next entry as soon as there is one, on one of the hub's threads and never
  // within this call. It must not block, and may call Next and destroy the subscription.
  void Next(Callback callback);

  // An outstanding callback and every later one get CANCELLED. Idempotent.
  void Cancel();

 private:
  const std::shared_ptr<SubscriptionCore<Item>> core_;
};

// A job's events.
using EventSubscription = Subscription<v1::JobEvent>;
// State changes of all jobs; has no end.
using ChangeSubscription = Subscription<JobChange>;

extern template class Subscription<v1::JobEvent>;
extern template class Subscription<JobChange>;

}  // namespace tandem

#endif  // TANDEM_SERVER_EVENTS_SUBSCRIPTION_H_
