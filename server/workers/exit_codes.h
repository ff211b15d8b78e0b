#ifndef TANDEM_SERVER_WORKERS_EXIT_CODES_H_
#define TANDEM_SERVER_WORKERS_EXIT_CODES_H_

namespace tandem {

// A worker's exit codes. The worker's FINISHED event, not the exit code, tells if the job succeeded.
enum WorkerExitCode : int {
  // The daemon has a FINISHED event, or the spool has it.
  kWorkerDone = 0,
  // The command line is wrong, or the launch file cannot be read.
  kWorkerBadLaunch = 2,
  // Another process holds the lock of the job's folder.
  kWorkerLockHeld = 3,
  // The event spool could not be written, so the worker could not report.
  kWorkerSpoolFailed = 4,
  // The daemon said that this worker is not the job's worker.
  kWorkerDismissed = 5,
  // Like kWorkerDone, but CUDA failed in a way that leaves a process unusable.
  kWorkerDeviceFailed = 6,
  // For a worker of a group, except the first, which reports the failure: its own training or another
  // worker's training failed.
  kWorkerGroupFailed = 7,
  // For a worker without a daemon: training failed or was stopped; its log has the reason.
  kWorkerTrainingFailed = 8,
  // The worker could not be confined as the daemon asked (--worker-sandbox=on).
  kWorkerNotConfined = 9,
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_EXIT_CODES_H_
