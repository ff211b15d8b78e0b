#ifndef TANDEM_SERVER_JOBS_CLOCK_WATCH_H_
#define TANDEM_SERVER_JOBS_CLOCK_WATCH_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"

namespace tandem {

// Computes the age of timestamps by the machine's clock, which may be set ahead or back. Not thread-safe.
//
// Counts the known time: all time that Clock::Elapsed() measures from one look to the next and, within a
// boot, from one process to the next. The time between the last look before a reboot and the first look after
// it never counts, however far the clock moved. No gap is short enough to count. So many short gaps cannot
// make a timestamp look too old, and their cost is at most their sum.
//
// If the clock differs from the known time by more than a second, a mark records the clock's new value. A
// timestamp is looked up between its neighbouring marks. If the clock showed it twice, the later time counts.
// So an age is never too large, except for that second. It may be too small if the timestamp is within an
// hour of a mark, because nobody knows when between two looks the clock was set. If the look before the mark
// was longer than an hour ago, this time replaces the hour.
class ClockWatch {
 public:
  struct Options {
    // The file that keeps the known time for the next process. Empty: none.
    std::string path;
    // The id of this boot. Empty: differs from every other boot.
    std::string boot_id;
    // Ages above this value need not be told apart.
    absl::Duration longest_age = absl::InfiniteDuration();
    Env* env = Env::Real();
  };

  // `options.env` and `clock` must outlive this object. Clock::Elapsed() must include the time that the
  // machine is suspended.
  ClockWatch(Options options, const Clock* clock) : options_(std::move(options)), clock_(clock) {}

  // Reads the clock and returns the known time. Writes the file now and then, and always if this is the
  // `last` look. Call about every ten minutes. After a longer pause, timestamps from the pause may look
  // younger.
  absl::Duration Look(bool last = false);

  // Call the following methods only after the first look.

  // Returns the known time at which the clock showed `stamp`. For a future timestamp, the known time at which
  // the clock will show it.
  absl::Duration KnownAt(absl::Time stamp) const;
  // Returns the known time minus Clock::Elapsed(). Changes only with a look.
  absl::Duration offset() const { return known_ - elapsed_; }
  // Returns a sentence for people if the last look found the clock changed; otherwise empty.
  const std::string& news() const { return news_; }
  // Returns the status of the last write of the file; OK before the first.
  const absl::Status& written() const { return write_status_; }

 private:
  // From the known time `known` on, the clock showed `clock` and later times.
  struct Mark {
    absl::Time clock;
    absl::Duration known;
    // The clock may have been set this long before.
    absl::Duration unsure;
  };

  // Continues from the file. Returns true if the file is from before a reboot.
  bool Begin(absl::Time now, absl::Duration elapsed);
  // Reads the file's content. Returns false if the content is invalid.
  bool Parse(absl::string_view content, std::string* boot, absl::Time* seen);
  void ForgetMarks();
  void Write(absl::Time now);

  const Options options_;
  const Clock* const clock_;
  // The values at the last look.
  absl::Duration known_;
  absl::Duration elapsed_;
  std::string news_;
  // Oldest first. Empty until the first look.
  std::vector<Mark> marks_;
  // The time of the last write, by Clock::Elapsed().
  absl::Duration written_ = -absl::InfiniteDuration();
  absl::Status write_status_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_CLOCK_WATCH_H_
