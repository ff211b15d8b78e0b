#include "client/cli/waiting_text.h"

#include "absl/strings/str_cat.h"
#include "client/cli/format.h"

namespace tandem::cli {

std::string StartText(const v1::Waiting& waiting, absl::Time now) {
  if (!waiting.has_estimated_start_time()) return "-";
  const absl::Duration wait = FromProto(waiting.estimated_start_time()) - now;
  return wait < absl::Seconds(1) ? "now" : absl::StrCat("in ", FormatAge(wait));
}

std::string WaitingText(const v1::Waiting& waiting, absl::Time now) {
  std::string text;
  if (waiting.position() > 0) text = absl::StrCat("#", waiting.position(), " in the queue");
  if (waiting.has_estimated_start_time()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "starts ", StartText(waiting, now));
  }
  if (!waiting.message().empty()) absl::StrAppend(&text, text.empty() ? "" : ": ", waiting.message());
  return text;
}

}  // namespace tandem::cli
