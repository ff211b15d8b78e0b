#ifndef TANDEM_SERVER_RPC_TOKEN_WATCH_H_
#define TANDEM_SERVER_RPC_TOKEN_WATCH_H_

#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/auth/authenticator.h"
#include "server/rpc/fair_pool.h"
#include "server/rpc/open_calls.h"

namespace tandem {

// Ends open calls whose callers' tokens were revoked or have expired since they began, and cuts off calls
// whose clients do not read: neither the end by the next look, nor an answer in time. Drops the work that
// waits for calls which have ended. Has a thread of its own.
class TokenWatch {
 public:
  // Asks of each call every `interval`. All pointers outlive it.
  TokenWatch(const Authenticator* authenticator, OpenCalls* calls, std::vector<FairPool*> pools,
             absl::Duration interval = absl::Seconds(1));
  ~TokenWatch();
  TokenWatch(const TokenWatch&) = delete;
  TokenWatch& operator=(const TokenWatch&) = delete;

 private:
  void Run();

  const Authenticator* const authenticator_;
  OpenCalls* const calls_;
  const std::vector<FairPool*> pools_;
  const absl::Duration interval_;
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_TOKEN_WATCH_H_
