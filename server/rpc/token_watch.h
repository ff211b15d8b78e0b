#ifndef TANDEM_SERVER_RPC_TOKEN_WATCH_H_
#define TANDEM_SERVER_RPC_TOKEN_WATCH_H_

#include <thread>

#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/auth/authenticator.h"
#include "server/rpc/active_streams.h"

namespace tandem {

// Ends open streams whose callers' tokens were revoked or have expired since they began: other calls are
// short, and are asked once. One whose client has not read its end by the next look is cut off, so that
// nobody keeps a place without a token. Has a thread of its own.
class TokenWatch {
 public:
  // Asks of each stream every `interval`. Both pointers outlive it.
  TokenWatch(const Authenticator* authenticator, ActiveStreams* streams,
             absl::Duration interval = absl::Seconds(1));
  ~TokenWatch();
  TokenWatch(const TokenWatch&) = delete;
  TokenWatch& operator=(const TokenWatch&) = delete;

 private:
  void Run();

  const Authenticator* const authenticator_;
  ActiveStreams* const streams_;
  const absl::Duration interval_;
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_TOKEN_WATCH_H_
