#ifndef TANDEM_CLIENT_LIB_WAIT_OBSERVER_H_
#define TANDEM_CLIENT_LIB_WAIT_OBSERVER_H_

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tandem::client {

// Looks on while a call waits because the daemon asked for it. Not thread-safe.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  // The daemon refused a call for now; it is made again after `wait`.
  virtual void OnAskedToWait(const absl::Status& why, absl::Duration wait) = 0;
  // Called at least every 100 ms meanwhile, and while a call lasts for which the daemon may have to read much
  // data. False: the first ends with the daemon's answer, the second is CANCELLED.
  virtual bool KeepWaiting() { return true; }
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_WAIT_OBSERVER_H_
