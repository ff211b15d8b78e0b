#ifndef TANDEM_SERVER_SCHEDULER_SCHEDULER_H_
#define TANDEM_SERVER_SCHEDULER_SCHEDULER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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
// Start().
class Scheduler : public JobObserver {
 public:
  // All must outlive the scheduler; it must be stopped before the store is closed.
  Scheduler(JobMachine* jobs, Inventory* inventory, const PlacementPolicy* policy, WorkerStarter* starter);
  // Stop().
  ~Scheduler() override;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Puts the jobs that an earlier daemon left to where they were: queued ones into the queue in the given
  // order, the others' devices under their leases (RestoreLease). Before Start. Errors are of single leases:
  // the others are restored all the same.
  absl::Status Restore(const std::vector<v1::Job>& jobs);

  // Takes the lease of a job whose worker runs already, on Job.devices for Job.attempt. A device that is no
  // longer configured is left out, and then NOT_FOUND says which. FAILED_PRECONDITION: another job holds one
  // of them.
  absl::Status RestoreLease(const v1::Job& job);

  // Begins to place jobs.
  void Start();
  // Places no more jobs; those that are queued stay so. Returns when none is being started. Idempotent.
  void Stop();

  // The worker of this attempt is gone and its devices are free. No effect where the lease is another
  // attempt's.
  void ReleaseLease(const std::string& job_id, int32_t attempt);

  // All devices, `job` set for those that are held.
  std::vector<v1::Device> ListDevices() const;

  void OnQueued(const v1::Job& job) override;
  void OnTerminal(const v1::Job& job) override;

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_SCHEDULER_H_
