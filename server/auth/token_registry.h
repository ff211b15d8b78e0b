#ifndef TANDEM_SERVER_AUTH_TOKEN_REGISTRY_H_
#define TANDEM_SERVER_AUTH_TOKEN_REGISTRY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "server/auth/caller.h"
#include "server/store/store.h"
#include "tandem/v1/token.pb.h"

namespace tandem {

// The tokens that users were given, beside the daemon's own. Of their secrets only SHA-256 is kept, which is
// enough for secrets of 256 random bits. Thread-safe.
class TokenRegistry {
 public:
  template <typename T>
  using Done = absl::AnyInvocable<void(absl::StatusOr<T>)>;

  // A new token and its secret, which is shown this once.
  struct Made {
    v1::Token token;
    std::string secret;
  };

  // Both must outlive the registry, and the store be closed before it goes.
  TokenRegistry(Store* store, const Clock* clock) : store_(store), clock_(clock) {}
  TokenRegistry(const TokenRegistry&) = delete;
  TokenRegistry& operator=(const TokenRegistry&) = delete;

  // Reads what the store has. Before all else.
  absl::Status Load();

  // Makes a token for `wanted.user()`, with its role, time of expiry and quotas; `done` gets it when it is
  // durable. INVALID_ARGUMENT with the fields at fault ("token.user"). ALREADY_EXISTS: the user has one, be
  // it expired.
  void Create(const v1::Token& wanted, Done<Made> done);

  // Makes a user's token useless, at once. NOT_FOUND: there is none.
  void Revoke(const std::string& user, Done<v1::Token> done);

  // By user.
  std::vector<v1::Token> List() const;
  // The user's; nothing where there is none.
  std::optional<v1::Token> Find(const std::string& user) const;
  // Whose secret it is. NOT_FOUND: nobody's. UNAUTHENTICATED (TOKEN_EXPIRED): its time is over.
  absl::StatusOr<Caller> Identify(absl::string_view secret) const;
  // Whether a caller whom Identify gave could still call. UNAUTHENTICATED: the token was revoked since
  // (TOKEN_REVOKED), or has expired (TOKEN_EXPIRED).
  absl::Status CheckStillValid(const Caller& caller) const;

 private:
  struct Known {
    StoredToken stored;
    // Never given twice, so that another token of the same user is told apart.
    int64_t number = 0;
    absl::Time expiry;
  };

  void Add(const StoredToken& token) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckExpiry(const Known& token) const;

  Store* const store_;
  const Clock* const clock_;

  mutable Mutex mutex_;
  // By user.
  std::map<std::string, Known> tokens_ ABSL_GUARDED_BY(mutex_);
  int64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  // Users by the hash of their secret.
  absl::flat_hash_map<std::string, std::string> users_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_TOKEN_REGISTRY_H_
