#include "server/auth/token_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/util/time_util.h"
#include "server/auth/token.h"

namespace tandem {
namespace {

constexpr size_t kMaxUserCharacters = 48;

bool IsUserName(absl::string_view user) {
  return !user.empty() && user.size() <= kMaxUserCharacters && absl::ascii_isalnum(user.front()) &&
         std::all_of(user.begin(), user.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.'; });
}

absl::Status Check(const v1::Token& wanted) {
  FieldViolations violations;
  const std::string shown = absl::CHexEscape(wanted.user().substr(0, 80));
  if (wanted.user().empty()) {
    violations.Add("token.user", "is required: whom the token is for");
  } else if (!IsUserName(wanted.user())) {
    violations.Add("token.user",
                   absl::StrCat("is '", shown,
                                "'; it may have letters, digits, '_', '-' and '.', the first a letter or "
                                "a digit, and at most ",
                                kMaxUserCharacters, " characters"));
  } else if (wanted.user() == kAdminUser) {
    violations.Add("token.user",
                   absl::StrCat("is '", kAdminUser, "', which is the user of the daemon's token file"));
  }
  if (wanted.has_max_devices() && wanted.max_devices() < 1) {
    violations.Add("token.max_devices", absl::StrCat("is ", wanted.max_devices(), "; must be at least 1"));
  }
  if (wanted.has_max_queued_jobs() && wanted.max_queued_jobs() < 1) {
    violations.Add("token.max_queued_jobs",
                   absl::StrCat("is ", wanted.max_queued_jobs(), "; must be at least 1"));
  }
  return violations.ToStatus();
}

absl::Status AlreadyExists(const std::string& user) {
  return WithReason(absl::AlreadyExistsError(
                        absl::StrCat("\"", user, "\" has a token already; revoke it to make another one")),
                    "TOKEN_EXISTS");
}

}  // namespace

absl::Status TokenRegistry::Load() {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<StoredToken> tokens, store_->Tokens());
  MutexLock lock(&mutex_);
  for (const StoredToken& token : tokens) Add(token);
  return absl::OkStatus();
}

void TokenRegistry::Add(const StoredToken& token) {
  tokens_[token.token.user()] = token;
  users_[token.hash] = token.token.user();
}

void TokenRegistry::Create(const v1::Token& wanted, Done<Made> done) {
  if (absl::Status status = Check(wanted); !status.ok()) return done(std::move(status));
  const absl::StatusOr<std::string> secret = RandomToken();
  if (!secret.ok()) return done(secret.status());
  const absl::StatusOr<std::string> hash = Sha256Of(*secret);
  if (!hash.ok()) return done(hash.status());
  StoredToken made;
  made.hash = *hash;
  v1::Token& token = made.token;
  token.set_name(absl::StrCat("tokens/", wanted.user()));
  token.set_user(wanted.user());
  token.set_admin(wanted.admin());
  if (wanted.has_max_devices()) token.set_max_devices(wanted.max_devices());
  if (wanted.has_max_queued_jobs()) token.set_max_queued_jobs(wanted.max_queued_jobs());
  *token.mutable_create_time() =
      google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(absl::ToUnixMicros(clock_->Now()));
  store_->Write([made](Transaction& transaction) { return transaction.InsertToken(made); },
                [this, made, secret = *secret, done = std::move(done)](absl::Status status) mutable {
                  if (absl::IsAlreadyExists(status)) status = AlreadyExists(made.token.user());
                  if (!status.ok()) return done(std::move(status));
                  {
                    MutexLock lock(&mutex_);
                    Add(made);
                  }
                  done(Made{made.token, secret});
                });
}

void TokenRegistry::Revoke(const std::string& user, Done<v1::Token> done) {
  std::optional<StoredToken> revoked;
  {
    MutexLock lock(&mutex_);
    const auto found = tokens_.find(user);
    if (found != tokens_.end()) {
      revoked = found->second;
      users_.erase(revoked->hash);
      tokens_.erase(found);
    }
  }
  if (!revoked.has_value()) {
    done(WithReason(absl::NotFoundError(absl::StrCat("there is no token 'tokens/",
                                                     absl::CHexEscape(user.substr(0, 80)), "'")),
                    "TOKEN_NOT_FOUND"));
    return;
  }
  store_->Write([user](Transaction& transaction) { return transaction.DeleteToken(user); },
                [this, revoked, done = std::move(done)](absl::Status status) mutable {
                  if (!status.ok()) {
                    // The next start would find it.
                    MutexLock lock(&mutex_);
                    Add(*revoked);
                  }
                  if (!status.ok()) return done(std::move(status));
                  done(revoked->token);
                });
}

std::vector<v1::Token> TokenRegistry::List() const {
  MutexLock lock(&mutex_);
  std::vector<v1::Token> tokens;
  for (const auto& [user, token] : tokens_) tokens.push_back(token.token);
  return tokens;
}

std::optional<v1::Token> TokenRegistry::Find(const std::string& user) const {
  MutexLock lock(&mutex_);
  const auto found = tokens_.find(user);
  if (found == tokens_.end()) return std::nullopt;
  return found->second.token;
}

std::optional<Caller> TokenRegistry::Identify(absl::string_view secret) const {
  const absl::StatusOr<std::string> hash = Sha256Of(secret);
  if (!hash.ok()) return std::nullopt;
  MutexLock lock(&mutex_);
  // How long the look-up takes tells of hashes alone.
  const auto user = users_.find(*hash);
  if (user == users_.end()) return std::nullopt;
  return Caller{user->second, tokens_.at(user->second).token.admin()};
}

}  // namespace tandem
