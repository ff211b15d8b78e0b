#ifndef TANDEM_SERVER_WORKERS_SUPERVISED_WORKER_H_
#define TANDEM_SERVER_WORKERS_SUPERVISED_WORKER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/workers/job_folder.h"
#include "server/workers/worker_process.h"
#include "server/workers/worker_session.h"
#include "tandem/v1/device.pb.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// A worker, or a group of workers that train a job, from the start to the return of its lease.
//
// Invariants: only a running worker has processes and gets signals. An ended worker never runs again. A
// worker that was told to end gets SIGTERM and later SIGKILL, unless it ends before. Until its signal is
// sent, a deadline only comes closer.
//
// Times are of the supervisor's monotonic clock. The supervisor's lock guards all members. Exceptions:
// members that never change, and members for the monitor's thread alone.
class SupervisedWorker {
 public:
  enum class Phase {
    kLaunching,  // the monitor must start its processes
    kResolving,  // its processes run, and the monitor must find them
    kRunning,    // it has a process
    kEnded,      // it has no process, or never had one
  };
  using Processes = std::vector<std::unique_ptr<ProcessGroup>>;

  // A worker to start. An earlier attempt's worker may block the start until `launch_until`.
  SupervisedWorker(const v1::Job& job, std::vector<v1::Device> devices, absl::Time launch_until);
  // A worker of an earlier daemon, kEnded until ExpectProcesses.
  explicit SupervisedWorker(const v1::Job& job);

  // These never change.
  const std::string& job_id() const { return job_id_; }
  int32_t attempt() const { return attempt_; }
  const JobFolder& folder() const { return folder_; }

  Phase phase() const { return phase_; }
  // Returns true if the monitor must launch, resolve or settle the worker now.
  bool IsDue(absl::Time now) const { return attend_at_ <= now; }
  // Sets the time of the next launch, resolution or settlement.
  void AttendAt(absl::Time time) { attend_at_ = time; }
  // Returns the time of the monitor's next action.
  absl::Time NextAction(absl::Duration silence_limit) const;

  // The arguments of the start. For the monitor's thread, until ForgetLaunch.
  const v1::Job& job() const { return job_; }
  const std::vector<v1::Device>& devices() const { return devices_; }
  absl::Time launch_until() const { return launch_until_; }
  void ForgetLaunch() { job_.Clear(); }

  // Sets the secret that the worker must show (worker_secret.h). Call before its launch.
  void SetSecret(std::string secret) { secret_ = std::move(secret); }
  // The worker of an earlier daemon may run. The monitor must find its processes.
  void ExpectProcesses() { phase_ = Phase::kResolving; }
  // The processes run, by worker; null for an ended process. A worker without a session must connect by
  // `connect_by`.
  void Run(Processes processes, absl::Time connect_by);
  // Returns the number of searches for the processes, this search included.
  int CountLook() { return ++looks_; }
  // There is no process. The monitor must settle the worker.
  void EndWithoutProcess();
  // The worker could not be started.
  void FailStart(absl::string_view why);

  const Processes& processes() const { return processes_; }
  bool HasProcess() const;
  // Takes a process that has ended.
  std::unique_ptr<ProcessGroup> TakeProcess(int index) { return std::move(processes_[index]); }
  // The last process has ended. Returns the session, to be closed.
  std::shared_ptr<WorkerSession> End();

  bool HasSecret(absl::string_view secret) const;
  // Makes `session` the worker's connection, repeats the orders to it, and returns the former session.
  std::shared_ptr<WorkerSession> Connect(const std::shared_ptr<WorkerSession>& session);
  // If `session` is the worker's connection, the worker is silent from now on. Returns whether it is.
  bool Disconnect(const WorkerSession* session, absl::Time now);

  // Tells the worker to stop. It gets SIGTERM at `deadline`. Idempotent.
  void Cancel(absl::Time deadline);
  // Tells the worker to pause. Its step and checkpoint may take any time.
  void Pause();
  // The worker gets SIGTERM at `deadline`, unless it gets it earlier.
  void TerminateBy(absl::Time deadline);
  // The worker gets SIGKILL at `deadline`, unless it gets it earlier.
  void KillBy(absl::Time deadline);
  // The worker has a protocol that this daemon does not know, and was told to exit by `deadline`.
  void Dismiss(int32_t protocol, absl::Time deadline);
  // Sends a running worker the signals that are due. Kills a worker that trains alone after a silence of
  // `silence_limit`. In a group, the other workers notice a silent worker and name it.
  void SendDueSignals(absl::Time now, absl::Duration silence_limit, absl::Duration kill_grace);
  // True if the supervisor killed it.
  bool killed() const { return killed_; }
  // The argument of Dismiss, if it was called.
  std::optional<int32_t> foreign_protocol() const { return foreign_protocol_; }

  void RemoveFolderAtEnd() { remove_folder_ = true; }
  bool remove_folder() const { return remove_folder_; }

  // The reason and message for WorkerLost, and `crashed` for the lease's return, if the worker did not report
  // its job's end. For the monitor's thread.
  v1::StateReason lost_reason() const { return lost_reason_; }
  const std::string& lost_message() const { return lost_message_; }
  // True if a device may be at fault.
  bool crashed() const { return crashed_; }
  // The process with this index has ended. `killed` and `foreign_protocol` are as they were at that time. May
  // read the worker's files. For the monitor's thread.
  void NoteEnd(int index, const ProcessGroup::End& end, bool killed, std::optional<int32_t> foreign_protocol);

 private:
  // Returns true if no other process of the job would notice that this one hangs.
  bool IsAlone() const;
  void SignalAll(int signal) const;
  // Sets lost_message_. A message about the processes' ends comes before a message about silence.
  void NoteLoss(int index, const ProcessGroup::End& end, bool killed);
  void NoteSilence(absl::Duration limit);
  // Returns "The worker", or the worker's number and ranks if there are several.
  std::string NameOf(int index) const;

  const std::string job_id_;
  const int32_t attempt_;
  const JobFolder folder_;
  const int workers_;   // The number of processes that train together.
  const int replicas_;  // The number of replicas of all processes.

  v1::Job job_;
  const std::vector<v1::Device> devices_;
  const absl::Time launch_until_;

  // Empty before the launch, or if unknown.
  std::string secret_;
  Phase phase_;
  int looks_ = 0;
  // Empty before kRunning.
  Processes processes_;
  std::shared_ptr<WorkerSession> session_;
  bool cancelling_ = false;
  bool pausing_ = false;
  // If the worker was connected before: the start of its silence. If the worker was just started or adopted:
  // the time by which it should connect.
  absl::Time silent_since_ = absl::InfiniteFuture();
  absl::Time terminate_at_ = absl::InfiniteFuture();
  absl::Time kill_at_ = absl::InfiniteFuture();
  absl::Time attend_at_ = absl::InfinitePast();
  std::optional<int32_t> foreign_protocol_;
  bool killed_ = false;
  bool remove_folder_ = false;

  // For the monitor's thread.
  bool crashed_ = false;
  v1::StateReason lost_reason_ = v1::STATE_REASON_WORKER_LOST;
  std::string lost_message_;
  // True if the message only says that a worker noticed another's loss.
  bool lost_by_hearsay_ = false;
};

// Describes a worker whose protocol this daemon does not know.
std::string DescribeForeignProtocol(int32_t protocol);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SUPERVISED_WORKER_H_
