#ifndef TANDEM_SERVER_JOBS_CLOCK_WATCH_H_
#define TANDEM_SERVER_JOBS_CLOCK_WATCH_H_

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"

namespace tandem {

// Notices where the machine's clock was set ahead: where it has gone further than time has, and, over the
// time when nobody watched, further than a little. What happened before such a jump is then of an age that
// nobody knows. Not thread-safe.
class ClockWatch {
 public:
  struct Options {
    // Where it keeps the time that it saw last, for whoever watches next; empty: nowhere.
    std::string path;
    // How far ahead the clock may go unnoticed, and how long there may be nobody to watch it.
    absl::Duration tolerance = absl::Hours(24);
    Env* env = Env::Real();
  };

  // `options.env` and `clock` outlive this.
  ClockWatch(Options options, const Clock* clock) : options_(std::move(options)), clock_(clock) {}

  // Looks at the clock, which it returns, and notes it in the file now and then, or at once where it is to be
  // the `last` look. To be called more often than the tolerance is long.
  absl::Time Look(bool last = false);

  // When, by the clock itself, that was last found to have been set ahead; never later than the last look, as
  // where it was set back since. Infinite past: it was not.
  absl::Time jumped() const { return jumped_; }
  // What happened, in a sentence for people, where the last look changed jumped(); otherwise empty.
  const std::string& news() const { return news_; }

 private:
  // Begins with what the one before left.
  void Begin(absl::Time now);
  void Write(absl::Time now);

  const Options options_;
  const Clock* const clock_;
  bool has_begun_ = false;
  absl::Time jumped_ = absl::InfinitePast();
  std::string news_;
  // The least that the clock was ahead of the time that has gone by since some moment: what it should be.
  absl::Duration usual_;
  absl::Time written_ = absl::InfinitePast();
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_CLOCK_WATCH_H_
