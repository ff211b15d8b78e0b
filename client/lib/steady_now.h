#ifndef TANDEM_CLIENT_LIB_STEADY_NOW_H_
#define TANDEM_CLIENT_LIB_STEADY_NOW_H_

#include <chrono>

#include "absl/time/time.h"

namespace tandem::client {

// Returns the time since a fixed moment in the past, on a clock that nobody can set. For waits and durations.
// Thread-safe.
inline absl::Duration SteadyNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_STEADY_NOW_H_
