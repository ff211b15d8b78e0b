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

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "server/jobs/job_machine.h"
#include "server/jobs/job_observer.h"

namespace tandem {

// Deletes old ended jobs by JobMachine::Delete, on its own thread. Thread-safe.
//
// A job is kept as long as a job that has not ended starts from its artifact. A sweep is deleted as a whole,
// when its last job is old enough. A sweep without jobs is kept. Deletes due jobs one by one, in batches with
// a pause in between, so that the store's writer and the removal of folders are not overloaded.
//
// A job's age is the wall-clock time since its end. The clock may be wrong at a start, and may jump. So
// nothing is deleted for a day, or for `keep` if `keep` is shorter, after this object is created and after
// each jump of more than a minute. A timestamp more than a day in the future counts as the time of the last
// start or jump. If a job ends with a timestamp more than a day from the present, this also counts as a jump
// of the clock. A smaller difference does not: a worker may report late, and another node has another clock.
class JobRetention : public JobObserver {
 public:
  struct Options {
    // The time that a job is kept after its end. Above 0.
    absl::Duration keep = absl::InfiniteDuration();
    // The time of the database's last restoration. All jobs are kept for `keep` after the restoration,
    // because the restored database does not know the jobs' later events.
    absl::Time restored = absl::InfinitePast();
  };

  // Called on the deleting thread or in Start.
  struct Listener {
    // A job or sweep ("jobs/<id>", "sweeps/<id>") was deleted.
    std::function<void(const std::string& name)> deleted;
    // `count` due jobs and sweeps could not be deleted and are retried later. Called once for all of them.
    // `first` is the first of them, and `why` its error. If `first` is empty, the jobs could not be read.
    std::function<void(int64_t count, const std::string& first, const absl::Status& why)> failed;
    // The clock jumped. `what` says how, and until when no job is deleted.
    std::function<void(const std::string& what)> clock_jumped;
  };

  // Add the object to JobMachine as an observer, then call Start. `jobs` and `clock` must outlive this
  // object, and this object the store's writer. Clock::Elapsed() must include the time that the machine is
  // suspended.
  JobRetention(JobMachine* jobs, const Options& options, const Clock* clock, Listener listener);
  // Calls Stop.
  ~JobRetention() override;
  JobRetention(const JobRetention&) = delete;
  JobRetention& operator=(const JobRetention&) = delete;

  // Finds the jobs that have ended, and deletes until Stop. Call once.
  void Start();
  // Blocks until a running deletion ends, which needs the store's writer. Idempotent.
  void Stop();

  // Looks at the clock again. For tests that set the clock.
  void Wake();

  void OnMoved(const v1::Job& job) override;

 private:
  void Run();
  // Returns the time. After a jump of the clock, forbids deletions for `hold_`.
  absl::Time LookAtClock();
  // Returns the difference of `time` from the time that the clock should show.
  absl::Duration AheadBy(absl::Time time) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds the jobs that have ended. Runs once, and again if the jobs could not be read or the clock jumped.
  void FindEnded(absl::Time now);
  // Blocks until a job may be due or the clock must be read. Returns false after Stop.
  bool AwaitDue();
  // Deletes a batch of the jobs due at `now`.
  void DeleteDue(absl::Time now);
  // Deletes the jobs of a batch.
  void Delete(const std::vector<std::string>& batch, absl::Time now);
  // Notes a failed deletion, and schedules another try.
  void Fail(const std::string& name, const absl::Status& why, absl::Time now);
  // Reports the failures since the last report, unless more is due at once.
  void TellOfFailures(absl::Time now);
  // Deletes the job or sweep `name`, or schedules another look. `needed` has the jobs whose models unfinished
  // jobs start from. If `name` must stay for one of them, the end of the unfinished job schedules the look.
  absl::Status Consider(const std::string& name, const std::set<std::string>& needed, absl::Time now);
  absl::Status ConsiderJob(const std::string& name, const std::set<std::string>& needed, absl::Time now);
  absl::Status ConsiderSweep(const std::string& name, const std::set<std::string>& needed, absl::Time now);
  // Returns the time at which an ended job is due. Only the thread calls it.
  absl::Time DueOf(const v1::Job& job, absl::Time now) const;
  // Schedules the only look at `name`.
  void Look(const std::string& name, absl::Time at) ABSL_LOCKS_EXCLUDED(mutex_);
  void LookLocked(const std::string& name, absl::Time at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  JobMachine* const jobs_;
  const absl::Duration keep_;
  // The time without deletions after a start or a jump of the clock.
  const absl::Duration hold_;
  const absl::Time restored_;
  const Clock* const clock_;
  const Listener listener_;
  // From here on, only the thread uses the members.
  // The time of the start or of the last jump of the clock. Earlier events cannot be later, whatever their
  // timestamps say.
  absl::Time steady_since_;
  // The time of the next FindEnded.
  absl::Time find_at_ = absl::InfinitePast();
  int64_t failed_ = 0;
  std::string first_failed_;
  absl::Status why_failed_;

  Mutex mutex_;
  // The time at which Clock::Elapsed() was 0, by the clock since its last jump.
  absl::Time origin_ ABSL_GUARDED_BY(mutex_);
  // True if a job ended while the clock was off, whatever the clock shows now.
  bool was_off_ ABSL_GUARDED_BY(mutex_) = false;
  // The times of the next looks, both ways. They are hints: a look reads the real state.
  std::map<std::string, absl::Time> times_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, std::string>> due_ ABSL_GUARDED_BY(mutex_);
  // The end of the thread's pause, or of the time without deletions.
  absl::Time not_before_ ABSL_GUARDED_BY(mutex_);
  // The end of the thread's wait.
  absl::Time next_look_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // True if the thread must compute its wait again.
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_JOB_RETENTION_H_
