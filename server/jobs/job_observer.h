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
  // The job is new or has another state. If a commit has several states of the job, called once with the last
  // state. The worker of a job that is queued, paused or ended may not have exited yet.
  virtual void OnMoved(const v1::Job&) {}
  // The job and its log were deleted, but not its folder.
  virtual void OnDeleted(const v1::Job&) {}
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_JOB_OBSERVER_H_
