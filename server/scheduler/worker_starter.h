#ifndef TANDEM_SERVER_SCHEDULER_WORKER_STARTER_H_
#define TANDEM_SERVER_SCHEDULER_WORKER_STARTER_H_

#include <vector>

#include "tandem/v1/device.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Starts worker processes.
class WorkerStarter {
 public:
  virtual ~WorkerStarter() = default;
  // Starts a worker for the job's attempt on the leased devices, in the order of ranks. Called on the store's
  // writer thread before observers hear of any later change of the job, so it must not block. Each call must
  // be followed by Scheduler::ReleaseLease(id, attempt) after the process has exited. If the process cannot
  // be started, JobMachine::WorkerLost must come before that.
  virtual void Start(const v1::Job& job, const std::vector<v1::Device>& devices) = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_WORKER_STARTER_H_
