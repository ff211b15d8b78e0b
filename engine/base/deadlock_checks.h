#ifndef TANDEM_ENGINE_BASE_DEADLOCK_CHECKS_H_
#define TANDEM_ENGINE_BASE_DEADLOCK_CHECKS_H_

#include "absl/synchronization/mutex.h"

namespace tandem {

// In an optimised build, turns off Abseil's search for deadlocks in the whole process. Debian's Abseil notes
// the order of locks at each Lock and Unlock, under a lock of the process. gRPC uses the same locks. Tests
// keep the search: a test that takes two locks in both orders aborts. Call this first in a program's main.
inline void TurnOffDeadlockChecks() {
#ifdef NDEBUG
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_DEADLOCK_CHECKS_H_
