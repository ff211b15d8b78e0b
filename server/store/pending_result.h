#ifndef TANDEM_SERVER_STORE_PENDING_RESULT_H_
#define TANDEM_SERVER_STORE_PENDING_RESULT_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"

namespace tandem {

// Blocks for the one answer of a method that calls back. Copies share the answer. Thread-safe.
template <typename T>
class PendingValue {
 public:
  PendingValue() : state_(std::make_shared<State>()) {}

  // Returns the `done` argument for the method.
  auto Callback() const {
    return [state = state_](T result) {
      MutexLock lock(&state->mutex);
      state->result = std::move(result);
    };
  }

  // Blocks until the answer arrives.
  T Wait() const {
    MutexLock lock(&state_->mutex);
    state_->mutex.Await(absl::Condition(
        +[](State* state) ABSL_NO_THREAD_SAFETY_ANALYSIS { return state->result.has_value(); },
        state_.get()));
    return *std::move(state_->result);
  }

 private:
  struct State {
    Mutex mutex;
    std::optional<T> result ABSL_GUARDED_BY(mutex);
  };
  const std::shared_ptr<State> state_;
};

template <typename T>
using PendingResult = PendingValue<absl::StatusOr<T>>;

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_PENDING_RESULT_H_
