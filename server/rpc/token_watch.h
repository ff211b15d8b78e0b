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

// Ends open calls whose tokens were revoked or have expired since the calls began. Cuts calls whose clients
// do not read: an ended call at the next check, and an answered call after a time limit. Drops the waiting
// work of ended calls. Has its own thread.
class TokenWatch {
 public:
  // Checks each call every `interval`. All pointers must outlive this object.
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
