#include "server/jobs/clock_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tandem {
namespace {

std::string Show(absl::Time time) { return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone()); }

std::string Rounded(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Seconds(1)));
}

// Of a line "<name>=<time>".
bool ReadTime(absl::string_view line, absl::string_view name, absl::Time* time) {
  return absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, "=") &&
         absl::ParseTime(absl::RFC3339_full, line, time, nullptr);
}

}  // namespace

absl::Time ClockWatch::Look(bool last) {
  const absl::Time now = clock_->Now();
  const absl::Duration ahead = now - absl::UnixEpoch() - clock_->Elapsed();
  const absl::Time before = jumped_;
  news_.clear();
  if (!has_begun_) {
    has_begun_ = true;
    usual_ = ahead;
    Begin(now);
  }
  usual_ = std::min(usual_, ahead);
  if (ahead - usual_ > options_.tolerance) {
    news_ = absl::StrCat("the clock was set ahead by ", Rounded(ahead - usual_), " to ", Show(now));
    jumped_ = now;
    usual_ = ahead;
  }
  if (jumped_ > now) {
    news_ = absl::StrCat("the clock was set back to ", Show(now), ", after it had been set ahead to ",
                         Show(jumped_));
    jumped_ = now;
  }
  // More often than that would be no use to anybody.
  const absl::Duration since = absl::AbsDuration(now - written_);
  if (last || jumped_ != before || since > options_.tolerance / 4) Write(now);
  return now;
}

void ClockWatch::Begin(absl::Time now) {
  if (options_.path.empty()) return;
  const absl::StatusOr<std::string> content = options_.env->ReadFile(options_.path);
  // The first that watches has nobody's word for when the clock was right.
  if (absl::IsNotFound(content.status())) return;
  absl::Time seen;
  const std::vector<absl::string_view> lines =
      content.ok() ? absl::StrSplit(*content, '\n') : std::vector<absl::string_view>();
  if (lines.size() < 2 || !ReadTime(lines[0], "seen", &seen) || !ReadTime(lines[1], "jumped", &jumped_)) {
    news_ =
        absl::StrCat(options_.path, " cannot be read, which says what the clock was when it was last seen");
    jumped_ = now;
  } else if (now - seen > options_.tolerance) {
    news_ = absl::StrCat("the clock was last seen ", Rounded(now - seen), " ago, at ", Show(seen),
                         ": nobody knows whether it was set ahead since");
    jumped_ = now;
  }
}

void ClockWatch::Write(absl::Time now) {
  if (options_.path.empty()) return;
  const absl::Status status = WriteFileAtomically(options_.env, options_.path, [&](WritableFile& file) {
    return file.Append(absl::StrCat("seen=", Show(now), "\njumped=", Show(jumped_), "\n"));
  });
  // Where the disk has no room, who comes next knows less, and is the more careful.
  if (status.ok()) written_ = now;
}

}  // namespace tandem
