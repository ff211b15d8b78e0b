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
#include "server/store/timestamps.h"

namespace tandem {
namespace {

using google::protobuf::util::TimeUtil;

constexpr size_t kMaxUserCharacters = 48;

bool IsUserName(absl::string_view user) {
  return !user.empty() && user.size() <= kMaxUserCharacters && absl::ascii_isalnum(user.front()) &&
         std::all_of(user.begin(), user.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.'; });
}

// Returns the token's time of expiry.
absl::Time ExpiryOf(const v1::Token& token) {
  return token.has_expire_time() ? TimeOf(token.expire_time()) : absl::InfiniteFuture();
}

bool IsTime(const google::protobuf::Timestamp& time) {
  return time.seconds() >= TimeUtil::kTimestampMinSeconds &&
         time.seconds() <= TimeUtil::kTimestampMaxSeconds && time.nanos() >= 0 &&
         time.nanos() < 1'000'000'000;
}

void CheckRoleAndExpiry(const v1::Token& wanted, absl::Time now, FieldViolations* violations) {
  if (!v1::TokenRole_IsValid(wanted.role())) {
    violations->Add("token.role",
                    absl::StrCat("is ", static_cast<int>(wanted.role()), ", which is not a role"));
  }
  if (!wanted.has_expire_time()) return;
  if (!IsTime(wanted.expire_time())) {
    violations->Add("token.expire_time", "must be a time of the years 1 to 9999");
  } else if (ExpiryOf(wanted) <= now) {
    violations->Add("token.expire_time",
                    absl::StrCat("is ", absl::FormatTime(ExpiryOf(wanted), absl::UTCTimeZone()),
                                 "; it must be in the future"));
  }
}

template <typename Number>
void CheckAtLeastOne(absl::string_view field, bool has, Number value, FieldViolations* violations) {
  if (has && value < 1)
    violations->Add(absl::StrCat("token.", field), absl::StrCat("is ", value, "; it must be at least 1"));
}

absl::Status Check(const v1::Token& wanted, absl::Time now) {
  FieldViolations violations;
  const std::string shown = absl::CHexEscape(wanted.user().substr(0, 80));
  if (wanted.user().empty()) {
    violations.Add("token.user", "is required: the user of the token");
  } else if (!IsUserName(wanted.user())) {
    violations.Add("token.user",
                   absl::StrCat("is '", shown, "'; it must have at most ", kMaxUserCharacters,
                                " letters, digits, '_', '-' or '.', and start with a letter or digit"));
  } else if (wanted.user() == kAdminUser) {
    violations.Add("token.user", absl::StrCat("is '", kAdminUser,
                                              "', the user of the daemon's token file; use another name"));
  }
  CheckRoleAndExpiry(wanted, now, &violations);
  CheckAtLeastOne("max_devices", wanted.has_max_devices(), wanted.max_devices(), &violations);
  CheckAtLeastOne("max_queued_jobs", wanted.has_max_queued_jobs(), wanted.max_queued_jobs(), &violations);
  CheckAtLeastOne("max_disk_bytes", wanted.has_max_disk_bytes(), wanted.max_disk_bytes(), &violations);
  CheckAtLeastOne("max_streams", wanted.has_max_streams(), wanted.max_streams(), &violations);
  return violations.ToStatus();
}

absl::Status AlreadyExists(const std::string& user) {
  return WithReason(absl::AlreadyExistsError(absl::StrCat("cannot make a token for \"", user,
                                                          "\": the user has one already; revoke it first")),
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
  tokens_[token.token.user()] = {token, ++last_number_, ExpiryOf(token.token)};
  users_[token.hash] = token.token.user();
}

void TokenRegistry::Create(const v1::Token& wanted, Done<Made> done) {
  if (absl::Status status = Check(wanted, clock_->Now()); !status.ok()) return done(std::move(status));
  const absl::StatusOr<std::string> secret = RandomToken();
  if (!secret.ok()) return done(secret.status());
  const absl::StatusOr<std::string> hash = Sha256Of(*secret);
  if (!hash.ok()) return done(hash.status());
  StoredToken made;
  made.hash = *hash;
  v1::Token& token = made.token;
  token.set_name(absl::StrCat("tokens/", wanted.user()));
  token.set_user(wanted.user());
  token.set_role(wanted.role() == v1::TOKEN_ROLE_UNSPECIFIED ? v1::TOKEN_ROLE_SUBMITTER : wanted.role());
  if (wanted.has_expire_time()) *token.mutable_expire_time() = wanted.expire_time();
  if (wanted.has_max_devices()) token.set_max_devices(wanted.max_devices());
  if (wanted.has_max_queued_jobs()) token.set_max_queued_jobs(wanted.max_queued_jobs());
  if (wanted.has_max_disk_bytes()) token.set_max_disk_bytes(wanted.max_disk_bytes());
  if (wanted.has_max_streams()) token.set_max_streams(wanted.max_streams());
  *token.mutable_create_time() = TimestampOf(clock_->Now());
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
      revoked = found->second.stored;
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
                    // The token is still in the database, and the next start would load it.
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
  for (const auto& [user, token] : tokens_) tokens.push_back(token.stored.token);
  return tokens;
}

std::optional<v1::Token> TokenRegistry::Find(const std::string& user) const {
  MutexLock lock(&mutex_);
  const auto found = tokens_.find(user);
  if (found == tokens_.end()) return std::nullopt;
  return found->second.stored.token;
}

absl::Status TokenRegistry::CheckExpiry(const Known& token) const {
  if (clock_->Now() < token.expiry) return absl::OkStatus();
  return WithReason(absl::UnauthenticatedError(absl::StrCat(
                        "cannot accept the token of \"", token.stored.token.user(), "\": it expired at ",
                        absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", token.expiry, absl::UTCTimeZone()),
                        "; ask an administrator for a new one")),
                    "TOKEN_EXPIRED");
}

absl::StatusOr<Caller> TokenRegistry::Identify(absl::string_view secret) const {
  TANDEM_ASSIGN_OR_RETURN(const std::string hash, Sha256Of(secret));
  MutexLock lock(&mutex_);
  // The time of the look-up depends only on hashes.
  const auto user = users_.find(hash);
  if (user == users_.end()) return absl::NotFoundError("no token has this secret");
  const Known& token = tokens_.at(user->second);
  TANDEM_RETURN_IF_ERROR(CheckExpiry(token));
  return Caller{user->second, token.stored.token.role(), token.number};
}

absl::Status TokenRegistry::CheckStillValid(const Caller& caller) const {
  MutexLock lock(&mutex_);
  const auto token = tokens_.find(caller.user);
  if (token == tokens_.end() || token->second.number != caller.token_number) {
    return WithReason(
        absl::UnauthenticatedError(absl::StrCat("cannot accept the token of \"", caller.user,
                                                "\": it was revoked; ask an administrator for a new one")),
        "TOKEN_REVOKED");
  }
  return CheckExpiry(token->second);
}

}  // namespace tandem
