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

// The users' tokens, besides the daemon's own token. Keeps only the SHA-256 of each secret, enough for
// secrets of 256 random bits. Thread-safe.
class TokenRegistry {
 public:
  template <typename T>
  using Done = absl::AnyInvocable<void(absl::StatusOr<T>)>;

  // A new token and its secret. The secret is shown only now.
  struct Made {
    v1::Token token;
    std::string secret;
  };

  // The store and the clock must outlive the registry. Close the store before destroying the registry.
  TokenRegistry(Store* store, const Clock* clock) : store_(store), clock_(clock) {}
  TokenRegistry(const TokenRegistry&) = delete;
  TokenRegistry& operator=(const TokenRegistry&) = delete;

  // Reads the tokens in the store. Call before any other method.
  absl::Status Load();

  // Creates a token for `wanted.user()` with the role, time of expiry and quotas in `wanted`. Calls `done`
  // when the token is durable. INVALID_ARGUMENT names the wrong fields ("token.user"). ALREADY_EXISTS: the
  // user has a token, perhaps an expired token.
  void Create(const v1::Token& wanted, Done<Made> done);

  // Revokes a user's token at once. Calls `done` when the revocation is durable; if the write fails, the
  // token is valid again. NOT_FOUND: the user has no token.
  void Revoke(const std::string& user, Done<v1::Token> done);

  // Sorted by user.
  std::vector<v1::Token> List() const;
  // Returns the user's token; nullopt if none.
  std::optional<v1::Token> Find(const std::string& user) const;
  // Returns the owner of a secret. NOT_FOUND: no user has it. UNAUTHENTICATED (TOKEN_EXPIRED): the token has
  // expired.
  absl::StatusOr<Caller> Identify(absl::string_view secret) const;
  // Checks that a caller from Identify may still call. UNAUTHENTICATED: the token was revoked since
  // (TOKEN_REVOKED) or has expired (TOKEN_EXPIRED).
  absl::Status CheckStillValid(const Caller& caller) const;

 private:
  struct Known {
    StoredToken stored;
    // Unique over all tokens, so that a user's later token differs.
    int64_t number = 0;
    absl::Time expiry;
  };

  void Add(const StoredToken& token) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckExpiry(const Known& token) const;

  Store* const store_;
  const Clock* const clock_;

  mutable Mutex mutex_;
  // Keyed by user.
  std::map<std::string, Known> tokens_ ABSL_GUARDED_BY(mutex_);
  int64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  // Users by the hash of their secret.
  absl::flat_hash_map<std::string, std::string> users_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_TOKEN_REGISTRY_H_
