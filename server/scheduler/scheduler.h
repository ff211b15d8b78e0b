#ifndef TANDEM_SERVER_SCHEDULER_SCHEDULER_H_
#define TANDEM_SERVER_SCHEDULER_SCHEDULER_H_

#include <cstdint>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "engine/base/mutex.h"
#include "server/jobs/job_machine.h"
#include "server/jobs/job_observer.h"
#include "server/scheduler/inventory.h"
#include "server/scheduler/placement_policy.h"
#include "server/scheduler/worker_starter.h"

namespace tandem {

// Starts queued jobs when their devices are free. Wakes when a job is queued or ends and when a lease
// returns; never polls. Thread-safe.
//
// A lease is taken before the job becomes STARTING and is given back by ReleaseLease alone, when the worker's
// process is gone: the end of the job does not free its devices.
//
// At a daemon's start: AddObserver(scheduler), Restore(machine.NonTerminalJobs()), adopt the workers,
// Start(). At its end: Stop(), close the store, destroy.
class Scheduler : public JobObserver {
 public:
  // All must outlive the scheduler.
  Scheduler(JobMachine* jobs, Inventory* inventory, const PlacementPolicy* policy, WorkerStarter* starter);
  // Stop().
  ~Scheduler() override;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Puts the jobs that an earlier daemon left to where they were: queued ones into the queue in the given
  // order, the others' devices under their leases (RestoreLease). Before Start. Errors are of single leases:
  // the others are restored all the same.
  absl::Status Restore(const std::vector<v1::Job>& jobs);

  // Takes the lease of a job whose worker may run already, on Job.devices for Job.attempt. A device that is
  // no longer configured is left out, and then NOT_FOUND says which. FAILED_PRECONDITION: another job holds
  // one of them; then nothing is taken.
  absl::Status RestoreLease(const v1::Job& job);

  // Begins to place jobs. Once.
  void Start();
  // Places no more jobs; those that are queued stay so. Those that are just becoming STARTING are still
  // handed to the WorkerStarter before this returns. Idempotent.
  void Stop();

  // The worker of this attempt is gone and its devices are free. No effect where the lease is another
  // attempt's.
  void ReleaseLease(const std::string& job_id, int32_t attempt);

  // All devices, `job` set for those that are held.
  std::vector<v1::Device> ListDevices() const { return inventory_->Devices(); }

  void OnQueued(const v1::Job& job) override;
  void OnPaused(const v1::Job& job) override { OnTerminal(job); }
  void OnTerminal(const v1::Job& job) override;

 private:
  // A job in the queue.
  struct Entry {
    WaitingJob job;
    absl::Time create_time;
    // Its lease is taken and JobMachine was asked to make it STARTING.
    bool starting = false;
  };

  void Run();
  // Asks the policy once and does what it says.
  void Place();
  // JobMachine's answer.
  void Scheduled(const std::string& id, absl::StatusOr<v1::Job> job);
  void Enqueue(const v1::Job& job);

  JobMachine* const jobs_;
  Inventory* const inventory_;
  const PlacementPolicy* const policy_;
  WorkerStarter* const starter_;

  Mutex mutex_;
  // First come first; jobs that wait again stand where their creation puts them.
  std::list<Entry> queue_ ABSL_GUARDED_BY(mutex_);
  // The attempts that hold leases, by job.
  absl::flat_hash_map<std::string, int32_t> leases_ ABSL_GUARDED_BY(mutex_);
  // STARTING, to be handed to the WorkerStarter.
  std::vector<v1::Job> ready_ ABSL_GUARDED_BY(mutex_);
  // Questions to JobMachine without an answer yet.
  int unanswered_ ABSL_GUARDED_BY(mutex_) = 0;
  // Something happened that the policy has not seen.
  bool wake_ ABSL_GUARDED_BY(mutex_) = false;
  // The store failed; look again after a while.
  bool retry_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  Mutex thread_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(thread_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_SCHEDULER_H_
