#ifndef TANDEM_CLIENT_LIB_WAIT_OBSERVER_H_
#define TANDEM_CLIENT_LIB_WAIT_OBSERVER_H_

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tandem::client {

// Observes a call that waits because the daemon asked for it. Not thread-safe.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  // The daemon refused a call for now. The client repeats the call after `wait`.
  virtual void OnAskedToWait(const absl::Status& why, absl::Duration wait) = 0;
  // Called at least every 100 ms while the client waits, and during calls for which the daemon may read much
  // data. If it returns false, a wait ends with the daemon's answer, and a call ends with CANCELLED.
  virtual bool KeepWaiting() { return true; }
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_WAIT_OBSERVER_H_
