#ifndef TANDEM_CLIENT_LIB_STEADY_NOW_H_
#define TANDEM_CLIENT_LIB_STEADY_NOW_H_

#include <chrono>

#include "absl/time/time.h"

namespace tandem::client {

// The time since some moment of the past, by a clock that nobody can set: for waits and durations.
// Thread-safe.
inline absl::Duration SteadyNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_STEADY_NOW_H_
