#ifndef TANDEM_SERVER_EVENTS_SUBSCRIPTION_H_
#define TANDEM_SERVER_EVENTS_SUBSCRIPTION_H_

#include <memory>

#include "server/events/item_source.h"
#include "server/store/records.h"

namespace tandem {

template <typename Item>
class SubscriptionCore;

// A watcher's position in a log. Gives the old entries first, then the new entries, each once and in order.
// Created by EventHub. Thread-safe, but only one Next may be outstanding.
//
// A stream reactor calls Next in its constructor and in OnWriteDone, StartWrite or Finish in the callback,
// and Cancel in OnCancel.
//
// An end with OK means that the log has ended; its last entry was given before. Errors:
// - NOT_FOUND: the job does not exist or was deleted.
// - OUT_OF_RANGE: the requested position is beyond the log's end.
// - UNAVAILABLE: the hub was closed.
// - CANCELLED: Cancel was called.
template <typename Item>
class Subscription final : public ItemSource<std::shared_ptr<const Item>> {
 public:
  using Callback = typename ItemSource<std::shared_ptr<const Item>>::Callback;

  explicit Subscription(std::shared_ptr<SubscriptionCore<Item>> core);
  // Drops an outstanding callback without calling it. Blocks if the callback runs on another thread.
  ~Subscription() override;
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  // Calls `callback` with the next entry as soon as it exists, on a thread of the hub. After the hub was
  // closed, calls it within Next instead. The callback must not block. It may call Next and destroy the
  // subscription.
  void Next(Callback callback) override;

  // Gives CANCELLED to the outstanding callback and every later callback. Idempotent.
  void Cancel() override;

 private:
  const std::shared_ptr<SubscriptionCore<Item>> core_;
};

// A subscription to a job's events.
using EventSubscription = Subscription<v1::JobEvent>;
// A subscription to state changes of all jobs. It has no end.
using ChangeSubscription = Subscription<JobChange>;

extern template class Subscription<v1::JobEvent>;
extern template class Subscription<JobChange>;

}  // namespace tandem

#endif  // TANDEM_SERVER_EVENTS_SUBSCRIPTION_H_
