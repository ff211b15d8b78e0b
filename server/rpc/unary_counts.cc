#include "server/rpc/unary_counts.h"

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/retry_delay.h"

namespace tandem {
namespace {

constexpr absl::Duration kDelay = absl::Seconds(2);

absl::Status TooMany(absl::string_view message, absl::string_view reason) {
  return WithRetryDelay(WithReason(absl::ResourceExhaustedError(message), reason), kDelay);
}

absl::Status TooManyUnread(absl::string_view user, int64_t most) {
  return TooMany(absl::StrCat("cannot answer \"", user, "\": ", most >> 20,
                              " MiB of earlier answers are unread; read them, or ask for smaller pages"),
                 "TOO_MANY_UNREAD_ANSWERS");
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnaryCounts::Place>> UnaryCounts::Begin(absl::string_view user, bool is_admin,
                                                                       absl::string_view connection) {
  MutexLock lock(&mutex_);
  const auto mine = users_.find(user);
  const User now = mine == users_.end() ? User() : mine->second;
  if (!is_admin && limits_.of_user > 0 && now.calls >= limits_.of_user) {
    return TooMany(absl::StrCat("cannot take more calls of \"", user, "\": ", now.calls,
                                " are open, the most for one user; wait for some answers"),
                   "TOO_MANY_CALLS");
  }
  const auto line = connections_.find(connection);
  if (line != connections_.end() && line->second >= limits_.of_connection) {
    return TooMany(absl::StrCat("cannot take more calls of this connection: ", line->second,
                                " are open, the most for one connection; wait for some answers"),
                   "TOO_MANY_CALLS");
  }
  if (now.answer_bytes >= limits_.answer_bytes) return TooManyUnread(user, limits_.answer_bytes);
  ++users_[user].calls;
  ++connections_[connection];
  return std::unique_ptr<Place>(new Place(this, std::string(user), std::string(connection)));
}

absl::Status UnaryCounts::CheckRoom(const Place& place) {
  MutexLock lock(&mutex_);
  if (users_[place.user_].answer_bytes < limits_.answer_bytes) return absl::OkStatus();
  return TooManyUnread(place.user_, limits_.answer_bytes);
}

absl::Status UnaryCounts::HoldAnswer(Place& place, int64_t bytes, bool is_repeatable) {
  MutexLock lock(&mutex_);
  User& user = users_[place.user_];
  if (is_repeatable && user.answer_bytes > 0 && bytes > limits_.answer_bytes - user.answer_bytes) {
    return TooManyUnread(place.user_, limits_.answer_bytes);
  }
  user.answer_bytes += bytes;
  place.answer_bytes_ = bytes;
  return absl::OkStatus();
}

void UnaryCounts::End(const Place& place) {
  MutexLock lock(&mutex_);
  const auto user = users_.find(place.user_);
  user->second.answer_bytes -= place.answer_bytes_;
  if (--user->second.calls == 0) users_.erase(user);
  const auto connection = connections_.find(place.connection_);
  if (--connection->second == 0) connections_.erase(connection);
}

}  // namespace tandem
