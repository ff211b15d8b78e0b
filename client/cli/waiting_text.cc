#include "client/cli/waiting_text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/format.h"

namespace tandem::cli {

std::string FormatStart(const v1::Waiting& waiting, absl::Time now) {
  if (waiting.reason() == v1::Waiting::REASON_STARTING) return "now";
  std::string likely;
  if (waiting.has_estimated_start_time()) {
    const absl::Duration wait = FromProto(waiting.estimated_start_time()) - now;
    likely = wait < absl::Seconds(1) ? "soon" : absl::StrCat("~", FormatAge(wait));
  }
  if (waiting.has_latest_start_time()) {
    // Rounds up, because FormatAge drops everything below its unit.
    const absl::Duration wait = FromProto(waiting.latest_start_time()) - now;
    const absl::Duration unit = wait < absl::Minutes(1)      ? absl::Seconds(1)
                                : wait < absl::Hours(1)      ? absl::Minutes(1)
                                : wait < 2 * absl::Hours(24) ? absl::Hours(1)
                                                             : absl::Hours(24);
    return absl::StrCat(likely, likely.empty() ? "" : ", ", "at most ", FormatAge(absl::Ceil(wait, unit)));
  }
  if (likely.empty()) return "-";
  return likely == "soon" ? likely : absl::StrCat(likely, " or later");
}

std::string WaitingText(const v1::Waiting& waiting, absl::Time now) {
  std::string text;
  if (waiting.position() > 0) text = absl::StrCat("#", waiting.position(), " in the queue");
  if (const std::string start = FormatStart(waiting, now); start != "-") {
    const bool is_span = absl::StartsWith(start, "~") || absl::StartsWith(start, "at most");
    absl::StrAppend(&text, text.empty() ? "" : ", ", is_span ? "starts in " : "starts ", start);
  }
  if (!waiting.message().empty()) absl::StrAppend(&text, text.empty() ? "" : ": ", waiting.message());
  return text;
}

}  // namespace tandem::cli
