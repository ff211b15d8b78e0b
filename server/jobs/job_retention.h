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

// Deletes old ended jobs by JobMachine::Delete, on its own thread. Thread-safe.
//
// A job is kept as long as a job that has not ended starts from its artifact. A sweep is deleted as a whole,
// when its last job is old enough. A sweep without jobs is kept. Deletes due jobs one by one, in batches with
// a pause in between, so that the store's writer and the removal of folders are not overloaded.
//
// A job's age is the known time since its end (ClockWatch). Forward jumps of the clock, and reboots while no
// daemon ran, do not count. So a wrong clock deletes nothing early. A machine that is switched off now and
// then deletes later by these times, and no more.
class JobRetention : public JobObserver {
 public:
  struct Options {
    // The time that a job is kept after its end. Above 0.
    absl::Duration keep = absl::InfiniteDuration();
    // The time of the database's last restoration. Jobs are also kept for `keep` after it, because the
    // restored database does not know what happened to them since.
    absl::Time restored = absl::InfinitePast();
    // As ClockWatch::Options::path and boot_id.
    std::string clock_file = {};
    std::string boot_id = {};
    // Must outlive this object.
    Env* env = Env::Real();
  };

  // Called on the deleting thread or in Start.
  struct Listener {
    // A job or sweep ("jobs/<id>", "sweeps/<id>") was deleted.
    std::function<void(const std::string& name)> deleted;
    // `count` due jobs and sweeps could not be deleted and are retried later. Called once for all of them.
    // `first` is the first of them, and `why` its error. If `first` is empty, the jobs could not be read.
    std::function<void(int64_t count, const std::string& first, const absl::Status& why)> failed;
    // A sentence: the clock was set, some time does not count, or the clock's file cannot be written.
    std::function<void(const std::string& what)> clock_news;
  };

  // Add the object to JobMachine as an observer, then call Start. `jobs` and `clock` must outlive this
  // object, and this object the store's writer. Clock::Elapsed() must include the time that the machine is
  // suspended.
  JobRetention(JobMachine* jobs, const Options& options, const Clock* clock, Listener listener);
  // Calls Stop.
  ~JobRetention() override;
  JobRetention(const JobRetention&) = delete;
  JobRetention& operator=(const JobRetention&) = delete;

  // Reads the clock, finds the jobs that have ended, and deletes until Stop. Call once.
  void Start();
  // Blocks until a running deletion ends, which needs the store's writer. Idempotent.
  void Stop();

  // Looks at the clock again. For tests that set the clock.
  void Wake();

  void OnTerminal(const v1::Job& job) override;

 private:
  void Run();
  // Returns the known time. All times below are known times, except absl::Time.
  absl::Duration LookAtClock();
  // Reports once that the clock's file cannot be written.
  void TellOfFile();
  // Returns the known time, extrapolated from the last look.
  absl::Duration KnownNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds the jobs that have ended. Runs once, and again if the jobs could not be read or the clock was set.
  void FindEnded(absl::Duration now);
  // Blocks until a job may be due or the clock must be read. Returns false after Stop.
  bool AwaitDue();
  // Deletes a batch of the jobs due at `now`.
  void DeleteDue(absl::Duration now);
  // Deletes the jobs of a batch.
  void Delete(const std::vector<std::string>& batch, absl::Duration now);
  // Notes a failed deletion, and schedules another try.
  void Fail(const std::string& name, const absl::Status& why, absl::Duration now);
  // Reports the failures since the last report, unless more is due at once.
  void TellOfFailures(absl::Duration now);
  // Deletes the job or sweep `name`, or schedules another look. `needed` has the jobs whose models unfinished
  // jobs start from. If `name` must stay for one of them, the end of the unfinished job schedules the look.
  absl::Status Consider(const std::string& name, const std::set<std::string>& needed, absl::Duration now);
  absl::Status ConsiderJob(const std::string& name, const std::set<std::string>& needed, absl::Duration now);
  absl::Status ConsiderSweep(const std::string& name, const std::set<std::string>& needed,
                             absl::Duration now);
  // Returns the time at which an ended job is due. Only Start and the thread call it.
  absl::Duration DueOf(const v1::Job& job) const;
  // Schedules the only look at `name`.
  void Look(const std::string& name, absl::Duration at) ABSL_LOCKS_EXCLUDED(mutex_);
  void LookLocked(const std::string& name, absl::Duration at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs a deletion and blocks until its answer.
  absl::Status Await(absl::FunctionRef<void(absl::AnyInvocable<void(absl::Status)>)> ask);

  JobMachine* const jobs_;
  const absl::Duration keep_;
  const absl::Time restored_;
  const Clock* const clock_;
  const Listener listener_;
  // From here on, only Start uses the members, and then only the thread.
  ClockWatch watch_;
  // The known time at the first look: earlier events cannot be later, whatever their timestamps say.
  absl::Duration started_;
  // True if the failure to write the clock's file was reported.
  bool told_of_file_ = false;
  // The time of the next FindEnded.
  absl::Duration find_at_ = -absl::InfiniteDuration();
  int64_t failed_ = 0;
  std::string first_failed_;
  absl::Status why_failed_;

  Mutex mutex_;
  // A copy of ClockWatch::offset().
  absl::Duration offset_ ABSL_GUARDED_BY(mutex_);
  // The times of the next looks, both ways. They are hints: a look reads the real state.
  std::map<std::string, absl::Duration> times_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Duration, std::string>> due_ ABSL_GUARDED_BY(mutex_);
  // The end of the thread's pause.
  absl::Duration not_before_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  // The end of the thread's wait.
  absl::Duration next_look_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  // True if the thread must compute its wait again.
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_JOB_RETENTION_H_
