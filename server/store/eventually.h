#ifndef TANDEM_SERVER_STORE_EVENTUALLY_H_
#define TANDEM_SERVER_STORE_EVENTUALLY_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tandem {

// For tests: polls until `holds()` is true. Returns false if `timeout` passes before.
template <typename Condition>
bool Eventually(Condition holds, absl::Duration timeout = absl::Minutes(1)) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!holds()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_EVENTUALLY_H_
