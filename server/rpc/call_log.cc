#include "server/rpc/call_log.h"

#include "absl/random/random.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/clock.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

std::string RandomCallId() {
  thread_local absl::BitGen random;
  return absl::StrFormat("%016x", absl::Uniform<uint64_t>(random));
}

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
  std::string line = absl::StrCat("call method=", method_, " peer=", peer_);
  if (!user_.empty()) absl::StrAppend(&line, " user=", user_);
  absl::StrAppend(&line, " call=", call_id_);
  if (!resource_.empty()) absl::StrAppend(&line, " resource=", resource_);
  absl::StrAppend(&line, " code=", absl::StatusCodeToString(status.code()));
  if (responses >= 0) absl::StrAppend(&line, " responses=", responses);
  absl::StrAppendFormat(&line, " ms=%.1f", absl::ToDoubleMilliseconds(duration));
  if (!status.ok())
    absl::StrAppend(&line, " message=\"", absl::CHexEscape(status.message().substr(0, 500)), "\"");
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
