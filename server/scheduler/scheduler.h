#ifndef TANDEM_SERVER_SCHEDULER_SCHEDULER_H_
#define TANDEM_SERVER_SCHEDULER_SCHEDULER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "server/jobs/job_machine.h"
#include "server/jobs/job_observer.h"
#include "server/jobs/waiting_source.h"
#include "server/scheduler/device_records.h"
#include "server/scheduler/fair_share.h"
#include "server/scheduler/inventory.h"
#include "server/scheduler/job_queue.h"
#include "server/scheduler/placement_policy.h"
#include "server/scheduler/run_time_estimate.h"
#include "server/scheduler/user_quota.h"
#include "server/scheduler/worker_starter.h"
#include "server/store/store.h"
#include "tandem/v1/daemon_service.pb.h"

namespace tandem {

// Starts queued jobs when devices are free, preempts jobs for others, and ends jobs at their time limits.
// Wakes when a job is queued, starts, ends or changes, when a lease returns, and when devices change. Also
// wakes at time limits, at ends of restart delays, and when a wait raises a job. Never polls. Thread-safe.
//
// A job on a cluster starts at once and holds no devices. The cluster decides when its workers run.
//
// A lease begins before the job becomes STARTING. Only ReleaseLease returns it, after the worker's process
// has exited: the end of the job does not free its devices.
//
// At a daemon's start: AddObserver(scheduler), SetWaitingSource(scheduler), RestoreRecords, Restore(the jobs
// of machine.VisitNonTerminalJobs), adopt the workers, Start(). At its end: Stop(), close the store, destroy.
class Scheduler : public JobObserver, public WaitingSource {
 public:
  struct Options {
    // The time after which a user's usage counts half.
    absl::Duration fair_share_half_life = absl::Hours(24);
    // See JobQueue.
    absl::Duration ageing_interval = absl::Hours(1);
    // Returns a user's quota. Called under the scheduler's lock. Default: no quota.
    std::function<UserQuota(const std::string&)> quota;
    // Returns why a STARTING or stopping job waits for its cluster; nullopt if the job does not wait. Called
    // under the scheduler's lock. Default: no job does.
    std::function<std::optional<v1::Waiting>(const std::string& job_id)> cluster_waiting =
        [](const std::string&) { return std::nullopt; };
  };

  // All pointers must outlive the scheduler.
  Scheduler(JobMachine* jobs, Store* store, Inventory* inventory, const PlacementPolicy* policy,
            WorkerStarter* starter, const Clock* clock, Options options);
  // Calls Stop.
  ~Scheduler() override;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Reads users' usage and devices' states from the store. Call before Restore.
  absl::Status RestoreRecords();

  // Returns a job without the largest parts of its spec, which neither the scheduler nor the adoption of
  // workers needs. The whole specs of all jobs may not fit in memory.
  static v1::Job Trimmed(v1::Job job);

  // Restores the jobs of an earlier daemon. Queued jobs enter the queue in the given order. The other jobs
  // get their leases (RestoreLease). Call before Start. An error concerns single leases; all other jobs are
  // restored.
  absl::Status Restore(const std::vector<v1::Job>& jobs);

  // Restores the lease of a job whose worker may be running, on Job.devices for Job.attempt. NOT_FOUND names
  // devices that are no longer configured; the lease has the other devices. FAILED_PRECONDITION: another job
  // holds a device, and the job gets no lease.
  absl::Status RestoreLease(const v1::Job& job);

  // Starts placing jobs. Call once.
  void Start();
  // Stops placing jobs; queued jobs stay queued. Jobs that are becoming STARTING are still given to the
  // WorkerStarter before Stop returns. Idempotent.
  void Stop();

  // Calls `done` on the scheduler's thread in its next round, to show that the thread works. `done` must not
  // block. Not called after Stop.
  void Ping(absl::AnyInvocable<void()> done);

  // The worker of this attempt has exited, so its devices are free. Does nothing if the lease belongs to
  // another attempt. `crashed`: the worker ended by a signal such as SIGSEGV or by a CUDA error, which counts
  // as a fault of its devices.
  void ReleaseLease(const std::string& job_id, int32_t attempt, bool crashed);

  // Returns all devices with their jobs.
  std::vector<v1::Device> ListDevices() const { return inventory_->Devices(); }

  // Takes a device out of service (DRAINED, EXCLUDED), or back into service (ACTIVE), which clears its
  // faults. Calls `done` when the change is durable. NOT_FOUND: no such device. FAILED_PRECONDITION: the
  // device is EXCLUDED and should become DRAINED.
  void SetDeviceState(const std::string& device, v1::DeviceState state, const std::string& reason,
                      JobMachine::Done<v1::Device> done);

  // A user's quota has changed. Places waiting jobs again.
  void OnQuotasChanged();

  // Checks if a job of the user with this spec could ever run. FAILED_PRECONDITION: too many suitable devices
  // are excluded, or the job needs more than the user's quota.
  absl::Status CheckCanRun(const std::string& user, const v1::JobSpec& spec,
                           int64_t planned_memory_bytes) const;

  // Returns the number of waiting jobs.
  int64_t queued_jobs() const;
  // Returns at most `most` jobs of the queue, from position `first` on, counted from 0, and all users.
  v1::ListQueueResponse ListQueue(int64_t first, int64_t most);

  // WaitingSource.
  std::optional<v1::Waiting> WaitingOf(const std::string& job_id, bool may_look) override;

  // JobObserver.
  void OnEvent(const v1::JobEvent& event) override;
  void OnMoved(const v1::Job& job) override;

 private:
  // A job that holds devices.
  struct Holder {
    // Trimmed, with the latest progress and priority. Until the job is STARTING, only its name, user, sweep
    // and priority.
    v1::Job job;
    Lease lease;
    absl::Time lease_time;
    // By Clock::Elapsed().
    absl::Duration leased_at;
    absl::Duration limit_at = absl::InfiniteDuration();
    // True if it was told to stop, or has stopped.
    bool ending = false;
    bool succeeded = false;
    // The waiting job, until JobMachine answers the request to make it STARTING.
    std::optional<WaitingJob> starting;
  };
  // The thread's requests to JobMachine, made without the lock.
  struct Orders {
    struct Schedule {
      std::string id;
      std::vector<std::string> devices;
    };
    std::vector<Schedule> schedules;
    std::vector<std::string> preemptions;
    std::vector<std::string> time_limits;
  };

  void Run();
  // Starts waiting jobs that run on a cluster. They hold no devices: the cluster has its own queue.
  void PlaceOnClusters(Orders* orders) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives a waiting job this lease, and orders its start on the devices of its ranks. Its place in the queue
  // stays.
  void Hold(const WaitingJob& waiting, Lease lease, std::vector<std::string> devices_of_ranks, absl::Time now,
            Orders* orders) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks the policy for a decision, and takes the leases.
  void Place(Orders* orders) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CollectTimeLimits(Orders* orders) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CarryOut(const Orders& orders);
  // JobMachine's answers, on the store's writer thread.
  void Scheduled(const std::string& id, const absl::StatusOr<v1::Job>& job);
  void Preempted(const std::string& id, const absl::Status& status);

  // The job became STARTING.
  void NoteStart(const std::string& id, const v1::Job& job);
  // The job has ended or is paused.
  void OnRest(const v1::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnPriorityChange(const std::string& id, int priority) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns Clock::Elapsed() as an absl::Time, which does not jump.
  absl::Time MonotonicNow() const { return absl::UnixEpoch() + clock_->Elapsed(); }
  // Converts a time of the wall clock. A time in the future becomes MonotonicNow.
  absl::Time MonotonicOf(absl::Time time) const {
    return MonotonicNow() - std::max(absl::ZeroDuration(), clock_->Now() - time);
  }
  // `waits_since` as WaitingJob::waits_since.
  void Enqueue(const v1::Job& job, absl::Time waits_since) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sets the starts of the groups' waits: the last start of a job that has not ended, or else the creation of
  // the oldest job. The real wait may be shorter, which raises a group at most once.
  void RestoreWaits(const std::vector<v1::Job>& jobs);
  Snapshot TakeSnapshot() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Updates explanations_.
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { wake_ = looked_at_changes_ = true; }
  void Charge(const Holder& holder) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration NextTimeLimit() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the time until the first restart delay ends.
  absl::Duration NextRestart() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the restart delays that are over.
  void EndDelays() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Wakes the policy if a wait has raised a job since the last decision.
  void NoteRaises() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds a job to the queue. Returns false if the job is already in it.
  bool AddToQueue(WaitingJob waiting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes a job from the queue.
  void Dequeue(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  JobMachine* const jobs_;
  Store* const store_;
  Inventory* const inventory_;
  const PlacementPolicy* const policy_;
  WorkerStarter* const starter_;
  const Clock* const clock_;
  const Options options_;

  mutable Mutex mutex_;
  JobQueue queue_ ABSL_GUARDED_BY(mutex_);
  // The ends of restart delays, by job id and Clock::Elapsed(), which does not jump.
  std::map<std::string, absl::Duration> delayed_ ABSL_GUARDED_BY(mutex_);
  // The ids of waiting jobs that run on a cluster, oldest first. May have jobs that left the queue.
  std::map<JobQueue::Key, std::string> cluster_jobs_ ABSL_GUARDED_BY(mutex_);
  // Keyed by job id. Includes queued jobs that were preempted or restart while their process still runs.
  absl::flat_hash_map<std::string, Holder> holders_ ABSL_GUARDED_BY(mutex_);
  FairShare usage_ ABSL_GUARDED_BY(mutex_);
  RunTimeEstimate estimate_ ABSL_GUARDED_BY(mutex_);
  DeviceRecords device_records_ ABSL_GUARDED_BY(mutex_);

  // The last result of Explain, and its positions by job id. Outdated if looked_at_changes_ is set.
  std::vector<Explanation> explanations_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, size_t> explained_ ABSL_GUARDED_BY(mutex_);
  absl::Duration looked_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();  // By Clock::Elapsed().
  bool looked_at_changes_ ABSL_GUARDED_BY(mutex_) = true;

  // See Ping.
  std::vector<absl::AnyInvocable<void()>> pings_ ABSL_GUARDED_BY(mutex_);
  // The number of requests to JobMachine without an answer.
  int unanswered_ ABSL_GUARDED_BY(mutex_) = 0;
  // The time of the next rise of a waiting job, by Clock::Elapsed().
  absl::Duration next_raise_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  // True if something happened that the policy has not seen.
  bool wake_ ABSL_GUARDED_BY(mutex_) = false;
  // True if the store failed. Try again after a delay.
  bool retry_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  Mutex thread_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(thread_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_SCHEDULER_H_
