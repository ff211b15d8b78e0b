#ifndef TANDEM_SERVER_RPC_COMPLETION_H_
#define TANDEM_SERVER_RPC_COMPLETION_H_

#include <type_traits>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

namespace tandem {

// A function that is called once with a result, an absl::Status or absl::StatusOr, from any thread. If
// destroyed without a call, calls the function with UNAVAILABLE, so that work may be dropped anywhere.
// Thread-compatible.
template <typename Result>
class Completion {
 public:
  // Does nothing when called or destroyed.
  Completion() = default;
  template <typename Function,
            typename = std::enable_if_t<!std::is_same_v<std::decay_t<Function>, Completion> &&
                                        std::is_invocable_v<Function, Result>>>
  Completion(Function&& function)
      : function_(std::forward<Function>(function)) {}  // NOLINT: as a function is.
  Completion(Completion&& other) noexcept : function_(std::exchange(other.function_, nullptr)) {}
  Completion& operator=(Completion&& other) noexcept {
    std::swap(function_, other.function_);
    return *this;
  }
  ~Completion() {
    if (function_ != nullptr)
      (*this)(absl::UnavailableError("the daemon is shutting down; try again when it runs"));
  }

  void operator()(Result result) { std::exchange(function_, nullptr)(std::move(result)); }

 private:
  absl::AnyInvocable<void(Result)> function_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_COMPLETION_H_
