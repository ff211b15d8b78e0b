#ifndef TANDEM_SERVER_JOBS_JOB_OBSERVER_H_
#define TANDEM_SERVER_JOBS_JOB_OBSERVER_H_

#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Observes durable changes of jobs, in order. Called on the store's writer thread. Must not block; may call
// JobMachine. Jobs come with their specs.
class JobObserver {
 public:
  virtual ~JobObserver() = default;
  // A new event of any kind in a job's log. Called before the other methods for the same change.
  virtual void OnEvent(const v1::JobEvent&) {}
  // The job waits for devices: it is new, resumed, preempted, or its worker never started.
  virtual void OnQueued(const v1::Job&) {}
  // The job's worker must stop.
  virtual void OnCancelling(const v1::Job&) {}
  // The job's worker must write a checkpoint and stop.
  virtual void OnPausing(const v1::Job&) {}
  // The job's worker must write a checkpoint and stop, to make room for another job. The job is then queued
  // again.
  virtual void OnPreempting(const v1::Job&) {}
  // The job is paused. Its worker may not have exited yet.
  virtual void OnPaused(const v1::Job&) {}
  // The job has ended. Its worker may not have exited yet.
  virtual void OnTerminal(const v1::Job&) {}
  // The job and its log were deleted, but not its folder.
  virtual void OnDeleted(const v1::Job&) {}
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_JOB_OBSERVER_H_
