#ifndef TANDEM_SERVER_JOBS_JOB_RETENTION_H_
#define TANDEM_SERVER_JOBS_JOB_RETENTION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "engine/base/mutex.h"
#include "server/jobs/clock_watch.h"
#include "server/jobs/job_machine.h"
#include "server/jobs/job_observer.h"

namespace tandem {

// Deletes jobs that ended some time ago, by JobMachine::Delete, on a thread of its own. Thread-safe.
//
// One whose artifact a job that has not ended begins with stays until that one has ended. A sweep goes as a
// whole, when the last of its jobs ended so long ago; one whose jobs were all deleted stays. What is due is
// deleted one by one, some at a time with a pause in between, so that neither the store's writer nor whoever
// removes the folders is held up.
//
// A job's age is the time that is known to have passed since its end (ClockWatch): what the clock was set
// ahead since, and what passed over a reboot while no daemon ran, does not count. So a clock that is wrong
// deletes nothing early, and a machine that is off now and then deletes later by these times, and no more.
class JobRetention : public JobObserver {
 public:
  struct Options {
    // Above 0: how long after its end a job is kept.
    absl::Duration keep = absl::InfiniteDuration();
    // When the database was restored, and after which a job is kept for so long, too: it does not know what
    // has become of its jobs since.
    absl::Time restored = absl::InfinitePast();
    // ClockWatch::Options::path and boot_id.
    std::string clock_file = {};
    std::string boot_id = {};
    // Outlives this.
    Env* env = Env::Real();
  };

  // What is to be told, on the thread that deletes or starts.
  struct Listener {
    // A job or sweep ("jobs/<id>", "sweeps/<id>") was deleted.
    std::function<void(const std::string& name)> deleted;
    // So many could not be, once for all that were due together, and are tried again after a while; `first`
    // is one of them, and `why` its error. Empty: the jobs could not be read.
    std::function<void(int64_t count, const std::string& first, const absl::Status& why)> failed;
    // The clock was set, or some time does not count, or that cannot be noted; in a sentence.
    std::function<void(const std::string& what)> clock_news;
  };

  // Add it to the JobMachine as an observer, and then Start(). `jobs` and `clock` outlive this, and this the
  // store's writer. Clock::Elapsed() goes on while the machine is suspended.
  JobRetention(JobMachine* jobs, const Options& options, const Clock* clock, Listener listener);
  // Stop().
  ~JobRetention() override;
  JobRetention(const JobRetention&) = delete;
  JobRetention& operator=(const JobRetention&) = delete;

  // Looks at the clock and for the jobs that ended before, and goes on until Stop. Once.
  void Start();
  // Waits for a deletion in progress, which needs the store's writer. Idempotent.
  void Stop();

  // Looks at the clock again; for tests that move it.
  void Wake();

  void OnTerminal(const v1::Job& job) override;

 private:
  void Run();
  // The known time, by which the thread goes, as do all times below that are no absl::Time.
  absl::Duration LookAtClock();
  // Tells once where what is known of the clock cannot be noted.
  void TellOfFile();
  // That by the last look.
  absl::Duration KnownNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notes the jobs that have ended, which is done once, unless they cannot be read or the clock is set.
  void FindEnded(absl::Duration now);
  // Waits until something may be due, or the clock is to be looked at. False: Stop was called.
  bool AwaitDue();
  // Deletes a batch of what is due at `now`.
  void DeleteDue(absl::Duration now);
  // The batch's part of that.
  void Delete(const std::vector<std::string>& batch, absl::Duration now);
  // Notes what could not be deleted, and tries it again later.
  void Fail(const std::string& name, const absl::Status& why, absl::Duration now);
  // Tells of what failed since the last time, unless more is due at once.
  void TellOfFailures(absl::Duration now);
  // Deletes what `name` says, or notes when to look again; unless a job of `needed` is in the way, whose
  // user's end will have it looked at.
  absl::Status Consider(const std::string& name, const std::set<std::string>& needed, absl::Duration now);
  absl::Status ConsiderJob(const std::string& name, const std::set<std::string>& needed, absl::Duration now);
  absl::Status ConsiderSweep(const std::string& name, const std::set<std::string>& needed,
                             absl::Duration now);
  // When it is to be deleted, where it has ended. Of Start's thread and the one that it started.
  absl::Duration DueOf(const v1::Job& job) const;
  // Has it looked at `name` at this time, and at no other.
  void Look(const std::string& name, absl::Duration at) ABSL_LOCKS_EXCLUDED(mutex_);
  void LookLocked(const std::string& name, absl::Duration at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for the answer to a deletion.
  absl::Status Await(absl::FunctionRef<void(absl::AnyInvocable<void(absl::Status)>)> ask);

  JobMachine* const jobs_;
  const absl::Duration keep_;
  const absl::Time restored_;
  const Clock* const clock_;
  const Listener listener_;
  // Of Start, and then of the thread alone, as is what follows.
  ClockWatch watch_;
  // By the first look: what was before the start cannot be later, whatever its stamp says.
  absl::Duration started_;
  // The file of the clock could not be written, which was told.
  bool told_of_file_ = false;
  // When FindEnded is to be called.
  absl::Duration find_at_ = -absl::InfiniteDuration();
  int64_t failed_ = 0;
  std::string first_failed_;
  absl::Status why_failed_;

  Mutex mutex_;
  // ClockWatch::offset().
  absl::Duration offset_ ABSL_GUARDED_BY(mutex_);
  // When to look at which job or sweep, both ways. These are hints: what is so is read then.
  std::map<std::string, absl::Duration> times_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Duration, std::string>> due_ ABSL_GUARDED_BY(mutex_);
  // The thread has a pause until then.
  absl::Duration not_before_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  // Until then the thread waits.
  absl::Duration next_look_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  // The thread is to think again how long it waits.
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_JOB_RETENTION_H_
