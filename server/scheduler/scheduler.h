#ifndef TANDEM_SERVER_SCHEDULER_SCHEDULER_H_
#define TANDEM_SERVER_SCHEDULER_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
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

// Starts queued jobs when their devices are free, has others make room for them, and ends those whose time is
// up. Wakes when a job is queued, starts, ends or changes, when a lease returns, when devices change, at time
// limits, when a job that lost its worker has waited, and when waiting raises a job; never polls.
// Thread-safe.
//
// A lease is taken before the job becomes STARTING and is given back by ReleaseLease alone, when the worker's
// process is gone: the end of the job does not free its devices.
//
// At a daemon's start: AddObserver(scheduler), SetWaitingSource(scheduler), RestoreRecords, Restore(what
// machine.VisitNonTerminalJobs tells), adopt the workers, Start(). At its end: Stop(), close the store,
// destroy.
class Scheduler : public JobObserver, public WaitingSource {
 public:
  struct Options {
    // After this, what a user has used counts half.
    absl::Duration fair_share_half_life = absl::Hours(24);
    // See JobQueue.
    absl::Duration ageing_interval = absl::Hours(1);
    // The quota of each user; called with the scheduler's lock held. Default: none.
    std::function<UserQuota(const std::string&)> quota;
  };

  // All must outlive the scheduler.
  Scheduler(JobMachine* jobs, Store* store, Inventory* inventory, const PlacementPolicy* policy,
            WorkerStarter* starter, const Clock* clock, Options options);
  // Stop().
  ~Scheduler() override;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Reads what users have used and the state of devices. Before Restore.
  absl::Status RestoreRecords();

  // What the scheduler, and who adopts workers, need of a job's spec.
  static v1::JobSpec TrimmedSpec(const v1::JobSpec& spec);

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

  // Has `done` called on the scheduler's thread when it comes round again: to see whether it does. It must
  // not block. Not called any more once the scheduler stops.
  void Ping(absl::AnyInvocable<void()> done);

  // The worker of this attempt is gone and its devices are free. No effect where the lease is another
  // attempt's. `crashed`: it ended by a signal such as SIGSEGV or an error of CUDA, which counts against its
  // devices.
  void ReleaseLease(const std::string& job_id, int32_t attempt, bool crashed);

  // All devices, with the jobs that hold them.
  std::vector<v1::Device> ListDevices() const { return inventory_->Devices(); }

  // Has a device take no jobs (DRAINED, EXCLUDED) or take them again (ACTIVE, which forgets its faults);
  // durable before `done` gets it. NOT_FOUND: no such device. FAILED_PRECONDITION: it is EXCLUDED and is to
  // be DRAINED.
  void SetDeviceState(const std::string& device, v1::DeviceState state, const std::string& reason,
                      JobMachine::Done<v1::Device> done);

  // What a user may hold has changed: who waits for that is looked at anew.
  void OnQuotasChanged();

  // Whether a job of the user with this spec could ever run: FAILED_PRECONDITION where too many of the
  // devices that it needs are excluded, or it needs more than the user's quota.
  absl::Status CheckCanRun(const std::string& user, const v1::JobSpec& spec,
                           int64_t planned_memory_bytes) const;

  // How many jobs wait.
  int64_t queued_jobs() const;
  // `most` jobs of the queue, from the job at position `first` on, counted from 0, and all users.
  v1::ListQueueResponse ListQueue(int64_t first, int64_t most);

  // WaitingSource.
  std::optional<v1::Waiting> WaitingOf(const std::string& job_id, bool may_look) override;

  // JobObserver.
  void OnQueued(const v1::Job& job) override;
  void OnCancelling(const v1::Job& job) override { OnEnding(job); }
  void OnPausing(const v1::Job& job) override { OnEnding(job); }
  void OnPreempting(const v1::Job& job) override { OnEnding(job); }
  void OnPaused(const v1::Job& job) override { OnTerminal(job); }
  void OnTerminal(const v1::Job& job) override;
  void OnPriorityChanged(const v1::Job& job) override;
  void OnProgress(const v1::Job& job) override;

 private:
  // A job that holds devices.
  struct Holder {
    // Of its spec only what placing needs; its progress as it came last.
    v1::Job job;
    Lease lease;
    absl::Time lease_time;
    // By Clock::Elapsed(), both.
    absl::Duration leased_at;
    absl::Duration limit_at = absl::InfiniteDuration();
    // It was told to stop, or has.
    bool ending = false;
    bool succeeded = false;
    // While JobMachine was asked to make it STARTING and has not answered: how it waited.
    std::optional<WaitingJob> starting;
  };
  // What the thread is to ask JobMachine for, without the lock.
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
  // Asks the policy, and takes the leases.
  void Place(Orders* orders) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CollectTimeLimits(Orders* orders) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CarryOut(const Orders& orders);
  // JobMachine's answers.
  void Scheduled(const std::string& id, absl::StatusOr<v1::Job> job);
  void Preempted(const std::string& id, const absl::Status& status);

  void OnEnding(const v1::Job& job);
  // `waits_since`: see WaitingJob.
  void Enqueue(const v1::Job& job, absl::Time waits_since) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the queue since when its groups wait: since the last start of a job that has not ended, else since
  // the creation of the oldest job. That may be too long ago, which raises a group once at most.
  void RestoreWaits(const std::vector<v1::Job>& jobs);
  Snapshot TakeSnapshot() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Brings explanations_ up to date.
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { wake_ = looked_at_changes_ = true; }
  void RestoreDevices(const std::vector<StoredDevice>& records) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountFault(const std::string& device, const v1::Job& faulty) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A job has succeeded on it: what crashed before may have been the jobs' fault.
  void ForgetFaults(const std::string& device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PutDevice(const std::string& device, const StoredDevice& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Charge(const Holder& holder) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration NextTimeLimit() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How long until the first of the delayed jobs has waited.
  absl::Duration NextRestart() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets those start that have.
  void EndDelays() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Looks anew where waiting has raised a job since the last decision.
  void NoteRaises() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes a job out of the queue.
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
  // Of jobs in the queue that lost their worker, by id: when they have waited, by Clock::Elapsed, which does
  // not jump.
  std::map<std::string, absl::Duration> delayed_ ABSL_GUARDED_BY(mutex_);
  // By job id; of those in the queue that were preempted or restart while their process is there, too.
  absl::flat_hash_map<std::string, Holder> holders_ ABSL_GUARDED_BY(mutex_);
  FairShare usage_ ABSL_GUARDED_BY(mutex_);
  RunTimeEstimate estimate_ ABSL_GUARDED_BY(mutex_);
  // By identity; of devices that are, or were, not simply in service.
  std::map<std::string, StoredDevice> device_records_ ABSL_GUARDED_BY(mutex_);
  // Whose jobs the faults of each were, by its identity too; of this daemon's time.
  std::map<std::string, std::set<std::string>> faulty_users_ ABSL_GUARDED_BY(mutex_);

  // The last Explain, in order and by id; old where looked_at_changes_ is set.
  std::vector<Explanation> explanations_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, size_t> explained_ ABSL_GUARDED_BY(mutex_);
  absl::Duration looked_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();  // By Clock::Elapsed().
  bool looked_at_changes_ ABSL_GUARDED_BY(mutex_) = true;

  // STARTING, to be handed to the WorkerStarter.
  std::vector<v1::Job> ready_ ABSL_GUARDED_BY(mutex_);
  // See Ping.
  std::vector<absl::AnyInvocable<void()>> pings_ ABSL_GUARDED_BY(mutex_);
  // Questions to JobMachine without an answer yet.
  int unanswered_ ABSL_GUARDED_BY(mutex_) = 0;
  // When the policy is to be asked because waiting raises a job, by Clock::Elapsed().
  absl::Duration next_raise_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
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
