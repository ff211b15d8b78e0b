#ifndef TANDEM_SERVER_JOBS_JOB_OBSERVER_H_
#define TANDEM_SERVER_JOBS_JOB_OBSERVER_H_

#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Hears of changes when they are durable, in their order, on the store's writer thread. Must not block, and
// may call JobMachine. Jobs come with their specs.
class JobObserver {
 public:
  virtual ~JobObserver() = default;
  // An entry of a job's log, whatever it is; before what else is told of the same change.
  virtual void OnEvent(const v1::JobEvent&) {}
  // The job waits for devices: it is new, is resumed, was preempted, or its worker never came to be.
  virtual void OnQueued(const v1::Job&) {}
  // The job's worker is to stop.
  virtual void OnCancelling(const v1::Job&) {}
  // The job's worker is to write a checkpoint and to stop.
  virtual void OnPausing(const v1::Job&) {}
  // The job's worker is to write a checkpoint and to stop, for another job; then the job is queued again.
  virtual void OnPreempting(const v1::Job&) {}
  // The job, which has not ended, has another priority.
  virtual void OnPriorityChanged(const v1::Job&) {}
  // The job's training went on: Job.progress is new. Without its spec.
  virtual void OnProgress(const v1::Job&) {}
  // The job is paused; its worker may still be about to exit.
  virtual void OnPaused(const v1::Job&) {}
  // The job has ended; its worker may still be about to exit.
  virtual void OnTerminal(const v1::Job&) {}
  // The job and its log are gone; its folder is not.
  virtual void OnDeleted(const v1::Job&) {}
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_JOB_OBSERVER_H_
