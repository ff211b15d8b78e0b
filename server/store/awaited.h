#ifndef TANDEM_SERVER_STORE_AWAITED_H_
#define TANDEM_SERVER_STORE_AWAITED_H_

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "engine/base/mutex.h"

namespace tandem {

// For tests: blocks for the single value that a callback gets. Copies of `Done()` may outlive this object.
// Thread-safe.
template <typename T>
class Awaited {
 public:
  // Returns the callback.
  auto Done() {
    return [state = state_](T value) {
      MutexLock lock(&state->mutex);
      state->value = std::move(value);
    };
  }

  bool IsDone() const {
    MutexLock lock(&state_->mutex);
    return state_->value.has_value();
  }

  // Blocks for the value and takes it. Ends the program after a minute without a value.
  T Get() {
    State& state = *state_;
    MutexLock lock(&state.mutex);
    const auto done = [&state]()
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) { return state.value.has_value(); };
    if (!state.mutex.AwaitWithTimeout(absl::Condition(&done), absl::Minutes(1))) {
      std::fprintf(stderr, "a callback was not called within a minute\n");
      std::abort();
    }
    T value = *std::move(state.value);
    state.value.reset();
    return value;
  }

 private:
  struct State {
    Mutex mutex;
    std::optional<T> value ABSL_GUARDED_BY(mutex);
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_AWAITED_H_
