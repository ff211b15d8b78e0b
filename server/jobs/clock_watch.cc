#include "server/jobs/clock_watch.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tandem {
namespace {

// The two clocks are read one after the other, and a leap second is a step.
constexpr absl::Duration kTolerance = absl::Seconds(1);
constexpr absl::Duration kWriteEvery = absl::Minutes(5);
// The least uncertainty of a mark: usually longer than the time between two looks and between two writes.
constexpr absl::Duration kUnsure = absl::Hours(1);

std::string Show(absl::Time time) { return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone()); }

std::string Rounded(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Seconds(1)));
}

bool ReadTime(absl::string_view text, absl::Time* time) {
  return absl::ParseTime(absl::RFC3339_full, text, time, nullptr);
}

// Returns the value of a line "<name>=<value>"; empty if the line has another name.
absl::string_view ValueOf(absl::string_view line, absl::string_view name) {
  return absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, "=") ? line : absl::string_view();
}

}  // namespace

absl::Duration ClockWatch::Look(bool last) {
  const absl::Time now = clock_->Now();
  const absl::Duration elapsed = clock_->Elapsed();
  news_.clear();
  const bool was_rebooted = marks_.empty() && Begin(now, elapsed);
  const absl::Duration since_last = elapsed - elapsed_;
  known_ += since_last;
  elapsed_ = elapsed;
  const absl::Duration ahead = (now - marks_.back().clock) - (known_ - marks_.back().known);
  const bool is_off = absl::AbsDuration(ahead) > kTolerance;
  if (is_off) {
    if (ahead < absl::ZeroDuration()) {
      news_ = absl::StrCat("the clock was set back by ", Rounded(-ahead), " to ", Show(now));
    } else if (was_rebooted) {
      news_ =
          absl::StrCat("the clock went on by ", Rounded(ahead), " to ", Show(now),
                       " over a reboot: nobody knows whether that time has passed, and it does not count");
    } else {
      news_ = absl::StrCat("the clock was set ahead by ", Rounded(ahead), " to ", Show(now),
                           ": that time does not count");
    }
    marks_.push_back({now, known_, std::max(kUnsure, since_last)});
  }
  ForgetMarks();
  // Writing more often would not help.
  if (last || is_off || elapsed_ - written_ >= kWriteEvery) Write(now);
  return known_;
}

absl::Duration ClockWatch::KnownAt(absl::Time stamp) const {
  const auto at = [&](size_t i) { return marks_[i].known + (stamp - marks_[i].clock); };
  for (size_t i = marks_.size(); i-- > 0;) {
    const absl::Duration begin = marks_[i].known;
    const bool is_last = i + 1 == marks_.size();
    const absl::Duration end = is_last ? known_ : marks_[i + 1].known;
    const absl::Duration unsure_end = is_last ? kUnsure : marks_[i + 1].unsure;
    if (at(i) >= begin - marks_[i].unsure && at(i) <= end + unsure_end) return std::clamp(at(i), begin, end);
  }
  // The clock skipped this time or has not reached it.
  for (size_t i = marks_.size(); i-- > 0;) {
    if (marks_[i].clock <= stamp) return i + 1 < marks_.size() ? marks_[i + 1].known : at(i);
  }
  return -absl::InfiniteDuration();
}

bool ClockWatch::Begin(absl::Time now, absl::Duration elapsed) {
  elapsed_ = elapsed;
  absl::StatusOr<std::string> content = absl::NotFoundError("");
  if (!options_.path.empty()) content = options_.env->ReadFile(options_.path);
  if (absl::IsNotFound(content.status())) {
    // At the first watch, trust the clock.
    marks_ = {{absl::UnixEpoch(), absl::UnixEpoch() - now, kUnsure}};
    return false;
  }
  std::string boot;
  absl::Time seen;
  if (!content.ok() || !Parse(*content, &boot, &seen)) {
    news_ =
        absl::StrCat(options_.path,
                     " cannot be read, which says what the clock was: what was before is taken to be of now");
    known_ = absl::ZeroDuration();
    elapsed_ = elapsed;
    marks_ = {{absl::UnixEpoch(), known_, kUnsure}, {now, known_, kUnsure}};
    return false;
  }
  if (options_.boot_id.empty() || boot != options_.boot_id) {
    elapsed_ = elapsed;
    return true;
  }
  // Another container may have another time since the boot. Count no more than the wall clock's difference.
  const absl::Duration most = std::max(now - seen, absl::ZeroDuration());
  elapsed_ = elapsed - std::clamp(elapsed - elapsed_, absl::ZeroDuration(), most);
  return false;
}

bool ClockWatch::Parse(absl::string_view content, std::string* boot, absl::Time* seen) {
  const std::vector<absl::string_view> lines = absl::StrSplit(content, '\n', absl::SkipEmpty());
  if (lines.size() < 5 || !ReadTime(ValueOf(lines[1], "seen"), seen) ||
      !absl::ParseDuration(ValueOf(lines[2], "elapsed"), &elapsed_) ||
      absl::AbsDuration(elapsed_) == absl::InfiniteDuration() ||
      !absl::ParseDuration(ValueOf(lines[3], "known"), &known_)) {
    return false;
  }
  *boot = std::string(ValueOf(lines[0], "boot"));
  for (size_t i = 4; i < lines.size(); ++i) {
    const std::vector<absl::string_view> parts = absl::StrSplit(ValueOf(lines[i], "mark"), ' ');
    Mark& mark = marks_.emplace_back();
    if (parts.size() != 3 || !ReadTime(parts[0], &mark.clock) ||
        !absl::ParseDuration(parts[1], &mark.known) || !absl::ParseDuration(parts[2], &mark.unsure)) {
      return false;
    }
    // Jobs are deleted by these values, so refuse values that no watch writes.
    if (absl::AbsDuration(mark.known) == absl::InfiniteDuration() || mark.known > known_ ||
        (i > 4 && mark.known < marks_[i - 5].known) || mark.unsure < kUnsure) {
      return false;
    }
  }
  const absl::Duration ahead = (*seen - marks_.back().clock) - (known_ - marks_.back().known);
  return absl::AbsDuration(ahead) <= 2 * kTolerance;
}

void ClockWatch::ForgetMarks() {
  // All times before the third mark are equally old: too old.
  while (marks_.size() > 2 && known_ - marks_[2].known >= options_.longest_age) {
    marks_.erase(marks_.begin() + 1);
    marks_[0] = {absl::UnixEpoch(), marks_[1].known, kUnsure};
  }
}

void ClockWatch::Write(absl::Time now) {
  if (options_.path.empty()) return;
  std::string content = absl::StrCat("boot=", options_.boot_id, "\nseen=", Show(now),
                                     "\nelapsed=", absl::FormatDuration(elapsed_),
                                     "\nknown=", absl::FormatDuration(known_), "\n");
  for (const Mark& mark : marks_) {
    absl::StrAppend(&content, "mark=", Show(mark.clock), " ", absl::FormatDuration(mark.known), " ",
                    absl::FormatDuration(mark.unsure), "\n");
  }
  write_status_ = WriteFileAtomically(options_.env, options_.path,
                                      [&](WritableFile& file) { return file.Append(content); });
  // If the disk is full, the next watch knows less, and so deletes later.
  if (write_status_.ok()) written_ = elapsed_;
}

}  // namespace tandem
