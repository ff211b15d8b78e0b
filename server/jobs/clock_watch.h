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

// Says how long ago something was that bears a time of the machine's clock, which may be set ahead or back.
// For that it counts the time that is known to have passed: all that Clock::Elapsed() says, from one look to
// the next and, within a boot, from one process to the next; and none from the last look before a reboot to
// the first one after it, however far the clock went meanwhile. That is the one rule: there is no gap so
// small that it counts, so that many small ones are no way to be early, and what they cost is their sum.
//
// Wherever the clock is not where the known time puts it, by more than a second, a mark says what the clock
// shows from then on. A time is looked up between the marks that it lies between; where the clock showed it
// twice the later one holds. What is so found is never older than it is, but for that second. Times within an
// hour of a mark, or within what passed since the look before it where that is more, may be taken for so much
// younger: nobody knows when between two looks it was set.
//
// Not thread-safe.
class ClockWatch {
 public:
  struct Options {
    // Where it keeps what it knows, for whoever watches next; empty: nowhere.
    std::string path;
    // Which boot this is; empty: another one than any.
    std::string boot_id;
    // What is older than that need not be told apart.
    absl::Duration longest_age = absl::InfiniteDuration();
    Env* env = Env::Real();
  };

  // `options.env` and `clock` outlive this. Clock::Elapsed() goes on while the machine is suspended.
  ClockWatch(Options options, const Clock* clock) : options_(std::move(options)), clock_(clock) {}

  // Looks at the clock, and returns the known time. Notes it in the file now and then, or at once where it is
  // to be the `last` look. To be called every ten minutes or so; where it is later,
  // what ends meanwhile may be taken for younger.
  absl::Duration Look(bool last = false);

  // From here on, after the first look.

  // The known time when the clock showed `stamp`; of what is "of the future", when it will show it.
  absl::Duration KnownAt(absl::Time stamp) const;
  // The known time less Clock::Elapsed(), until the next look.
  absl::Duration offset() const { return known_ - elapsed_; }
  // What the last look found out about the clock, in a sentence for people; empty: nothing new.
  const std::string& news() const { return news_; }
  // How it went when the file was last written; OK before that.
  const absl::Status& written() const { return write_status_; }

 private:
  // From that known time on the clock showed this, and went on with it.
  struct Mark {
    absl::Time clock;
    absl::Duration known;
    // It may have been set so much before.
    absl::Duration unsure;
  };

  // Begins with what the one before left. Returns whether that was before a reboot.
  bool Begin(absl::Time now, absl::Duration elapsed);
  // What the file says: false where it is none of these.
  bool Parse(absl::string_view content, std::string* boot, absl::Time* seen);
  void ForgetMarks();
  void Write(absl::Time now);

  const Options options_;
  const Clock* const clock_;
  // Of the last look.
  absl::Duration known_;
  absl::Duration elapsed_;
  std::string news_;
  // Oldest first; empty until the first look.
  std::vector<Mark> marks_;
  // By Clock::Elapsed().
  absl::Duration written_ = -absl::InfiniteDuration();
  absl::Status write_status_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_CLOCK_WATCH_H_
