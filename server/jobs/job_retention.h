#ifndef TANDEM_SERVER_JOBS_JOB_RETENTION_H_
#define TANDEM_SERVER_JOBS_JOB_RETENTION_H_

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
#include "engine/base/mutex.h"
#include "server/jobs/job_machine.h"
#include "server/jobs/job_observer.h"

namespace tandem {

// Deletes jobs that ended some time ago, by JobMachine::Delete, on a thread of its own. Thread-safe.
//
// One whose artifact a job that has not ended begins with stays until that one has ended. A sweep goes as a
// whole, when the last of its jobs ended so long ago; one whose jobs were all deleted stays. What is due is
// deleted one by one, some at a time with a pause in between, so that neither the store's writer nor whoever
// removes the folders is held up.
class JobRetention : public JobObserver {
 public:
  // Told of each job or sweep ("jobs/<id>", "sweeps/<id>") that was deleted, and of each that could not be,
  // which is tried again after a while; where `name` is empty, the jobs could not be read. On the thread
  // that deletes.
  using Heard = std::function<void(const std::string& name, const absl::Status& status)>;

  // `keep` above 0: how long after its end a job is kept, and after `restored`, when the database was
  // restored: it does not know what has become of its jobs since. Add it to the JobMachine as an observer,
  // and then Start(). `jobs` and `clock` outlive this, and this the store's writer.
  JobRetention(JobMachine* jobs, absl::Duration keep, absl::Time restored, const Clock* clock, Heard heard)
      : jobs_(jobs), keep_(keep), restored_(restored), clock_(clock), heard_(std::move(heard)) {}
  // Stop().
  ~JobRetention() override;
  JobRetention(const JobRetention&) = delete;
  JobRetention& operator=(const JobRetention&) = delete;

  // Looks for the jobs that ended before, and goes on until Stop. Once.
  void Start();
  // Waits for a deletion in progress, which needs the store's writer. Idempotent.
  void Stop();

  // Looks at the clock again; for tests that move it.
  void Wake();

  void OnTerminal(const v1::Job& job) override;

 private:
  void Run();
  // Notes the jobs that have ended; false: they could not be read.
  bool FindEnded();
  // Waits until something may be due. False: Stop was called.
  bool AwaitDue();
  // Deletes a batch of what is due.
  void DeleteDue();
  // Deletes what `name` says, or notes when to look again; unless a job of `needed` is in the way, whose
  // user's end will have it looked at.
  absl::Status Consider(const std::string& name, const std::set<std::string>& needed);
  absl::Status ConsiderJob(const std::string& name, const std::set<std::string>& needed);
  absl::Status ConsiderSweep(const std::string& name, const std::set<std::string>& needed);
  // When it is to be deleted, where it has ended.
  absl::Time DueOf(const v1::Job& job) const;
  // Has it looked at `name` at this time, and at no other.
  void Look(const std::string& name, absl::Time at);
  // Waits for the answer to a deletion.
  absl::Status Await(absl::FunctionRef<void(absl::AnyInvocable<void(absl::Status)>)> ask);

  JobMachine* const jobs_;
  const absl::Duration keep_;
  const absl::Time restored_;
  const Clock* const clock_;
  const Heard heard_;

  Mutex mutex_;
  // When to look at which job or sweep, both ways. These are hints: what is so is read then.
  std::map<std::string, absl::Time> times_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, std::string>> due_ ABSL_GUARDED_BY(mutex_);
  // The thread has a pause until then.
  absl::Time not_before_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // Until then the thread waits.
  absl::Time next_look_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // The thread is to think again how long it waits.
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_JOB_RETENTION_H_
