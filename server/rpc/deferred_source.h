#ifndef TANDEM_SERVER_RPC_DEFERRED_SOURCE_H_
#define TANDEM_SERVER_RPC_DEFERRED_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "server/events/item_source.h"
#include "server/rpc/call_interest.h"
#include "server/rpc/fair_pool.h"

namespace tandem {

// A source whose creation reads the database or files. A pool's thread creates the real source at the first
// Next.
template <typename Response>
class DeferredSource : public ItemSource<Response> {
 public:
  using Callback = typename ItemSource<Response>::Callback;
  // Called once, on the pool. The stream ends with its error.
  using Open = absl::AnyInvocable<absl::StatusOr<std::unique_ptr<ItemSource<Response>>>()>;

  // `pool` must outlive the source. `bytes` is the memory of `open`. If too much of the user's work is
  // waiting, the stream ends with FairPool::Offer's error. Waiting work is dropped if the stream is
  // cancelled.
  DeferredSource(FairPool* pool, std::string user, int64_t bytes, Open open)
      : state_(std::make_shared<State>(std::move(open))),
        post_([pool, user = std::move(user), bytes, interest = state_->interest()](Task task) {
          pool->Offer(
              user, bytes,
              [task = std::move(task)](absl::StatusOr<FairPool::Hold> taken) mutable {
                task(taken.status());
              },
              interest);
        }) {}

  void Next(Callback callback) override {
    // The callback may destroy this object.
    const std::shared_ptr<State> state = state_;
    if (ItemSource<Response>* source = state->Opened()) {
      source->Next(std::move(callback));
      return;
    }
    post_([state, callback = std::move(callback)](absl::Status taken) mutable {
      if (!taken.ok()) return callback(std::move(taken));
      state->First(std::move(callback));
    });
  }

  void Cancel() override {
    const std::shared_ptr<State> state = state_;
    state->Cancel();
  }

 private:
  // Called once: with OK on the pool, or with the pool's refusal.
  using Task = absl::AnyInvocable<void(absl::Status)>;

  class State {
   public:
    explicit State(Open open) : open_(std::move(open)) {}

    ItemSource<Response>* Opened() {
      MutexLock lock(&mutex_);
      return source_.get();
    }

    const std::shared_ptr<CallInterest>& interest() const { return interest_; }

    void First(Callback callback) {
      if (interest_->is_lost()) return callback(absl::CancelledError("the client cancelled the call"));
      auto opened = open_();
      if (!opened.ok()) return callback(opened.status());
      ItemSource<Response>* const source = opened->get();
      bool cancelled;
      {
        MutexLock lock(&mutex_);
        source_ = *std::move(opened);
        // Otherwise Cancel sees the source.
        cancelled = interest_->is_lost();
      }
      if (cancelled) source->Cancel();
      source->Next(std::move(callback));
    }

    void Cancel() {
      ItemSource<Response>* source;
      {
        MutexLock lock(&mutex_);
        interest_->Lose();
        source = source_.get();
      }
      if (source != nullptr) source->Cancel();
    }

   private:
    // Lost after Cancel.
    const std::shared_ptr<CallInterest> interest_ = std::make_shared<CallInterest>();
    Open open_;
    Mutex mutex_;
    // Set once.
    std::unique_ptr<ItemSource<Response>> source_ ABSL_GUARDED_BY(mutex_);
  };

  const std::shared_ptr<State> state_;
  absl::AnyInvocable<void(Task)> post_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_DEFERRED_SOURCE_H_
