#ifndef TANDEM_SERVER_WORKERS_EXIT_CODES_H_
#define TANDEM_SERVER_WORKERS_EXIT_CODES_H_

namespace tandem {

// What a worker's exit code says. Whether the job succeeded stands in the worker's FINISHED event, not here.
enum WorkerExitCode : int {
  // A FINISHED event is with the daemon, or waits for it in the spool.
  kWorkerDone = 0,
  // Wrong command line, or a launch file that cannot be read.
  kWorkerBadLaunch = 2,
  // Another process holds the lock of the job's folder.
  kWorkerLockHeld = 3,
  // The event spool could not be written, so nothing could be reported any more.
  kWorkerSpoolFailed = 4,
  // The daemon said that this worker is not, or no longer, the job's.
  kWorkerDismissed = 5,
  // As 0, and CUDA had failed in a way that leaves a process unusable.
  kWorkerDeviceFailed = 6,
  // One of several workers, not the first, which alone reports: its part of the training failed, or another's
  // did.
  kWorkerGroupFailed = 7,
  // A worker without a daemon: training failed, or was stopped, as its log says.
  kWorkerTrainingFailed = 8,
  // It could not be confined as the daemon asks (--worker-sandbox=on).
  kWorkerNotConfined = 9,
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_EXIT_CODES_H_
