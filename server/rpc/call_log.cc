#include "server/rpc/call_log.h"

#include <optional>

#include "absl/random/random.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "server/auth/refusal_budget.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

std::string RandomCallId() {
  thread_local absl::BitGen random;
  return absl::StrFormat("%016x", absl::Uniform<uint64_t>(random));
}

// The budget of log lines for each user's refused calls: a burst, then a rate per second.
constexpr double kRefusedAtOnce = 50;
constexpr double kRefusedASecond = 1;

// The budgets of all users in this process. Thread-safe.
class RefusedLines {
 public:
  // Returns nullopt if the call gets no line. Otherwise returns the number of the user's calls without a line
  // since the last line.
  std::optional<int64_t> Take(const std::string& user) {
    MutexLock lock(&mutex_);
    if (!budget_.Take(user, Clock::Real()->Elapsed())) return std::nullopt;
    return budget_.TakeLeftOut(user);
  }

 private:
  Mutex mutex_;
  RefusalBudget budget_ ABSL_GUARDED_BY(mutex_){kRefusedAtOnce, kRefusedASecond};
};

}  // namespace

CallLog::CallLog(absl::string_view method, absl::string_view peer, const CallHooks* hooks)
    : hooks_(hooks),
      method_(method),
      peer_(peer),
      call_id_(RandomCallId()),
      start_(Clock::Real()->Elapsed()) {
  if (hooks_->started != nullptr) hooks_->started(method_);
}

void CallLog::SetResource(absl::string_view name) { resource_ = absl::CHexEscape(name.substr(0, 100)); }

void CallLog::Finish(const absl::Status& status, int64_t responses) const {
  const absl::Duration duration = Clock::Real()->Elapsed() - start_;
  if (hooks_->ended != nullptr) {
    hooks_->ended({method_, peer_, user_, resource_, call_id_, status, duration, responses >= 0});
  }
  int64_t left_out = 0;
  if (IsRefusal(status.code())) {
    static RefusedLines* const lines = new RefusedLines();
    const std::optional<int64_t> taken = lines->Take(user_);
    if (!taken.has_value()) return;
    left_out = *taken;
  }
  std::string line = absl::StrCat("call method=", method_, " peer=", peer_);
  if (!user_.empty()) absl::StrAppend(&line, " user=", user_);
  absl::StrAppend(&line, " call=", call_id_);
  if (!resource_.empty()) absl::StrAppend(&line, " resource=", resource_);
  absl::StrAppend(&line, " code=", absl::StatusCodeToString(status.code()));
  if (responses >= 0) absl::StrAppend(&line, " responses=", responses);
  absl::StrAppendFormat(&line, " ms=%.1f", absl::ToDoubleMilliseconds(duration));
  if (!status.ok())
    absl::StrAppend(&line, " message=\"", absl::CHexEscape(status.message().substr(0, 500)), "\"");
  if (left_out > 0) absl::StrAppend(&line, " refused_without_a_line=", left_out);
  switch (status.code()) {
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnknown:
      spdlog::error(line);
      break;
    default:
      spdlog::info(line);
  }
}

}  // namespace tandem
