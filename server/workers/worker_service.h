#ifndef TANDEM_SERVER_WORKERS_WORKER_SERVICE_H_
#define TANDEM_SERVER_WORKERS_WORKER_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "server/jobs/job_machine.h"
#include "server/workers/worker_session.h"
#include "tandem/internal/v1/worker.grpc.pb.h"

namespace tandem {

// The gRPC service for workers: each stream is a WorkerSession. Thread-safe.
class WorkerStreams final : public internal::v1::WorkerService::CallbackService {
 public:
  // `host` and `jobs` must outlive the service.
  WorkerStreams(WorkerSessionHost* host, JobMachine* jobs) : host_(host), jobs_(jobs) {}

  grpc::ServerBidiReactor<internal::v1::ConnectRequest, internal::v1::ConnectResponse>* Connect(
      grpc::CallbackServerContext*) override {
    return WorkerSession::Start(host_, jobs_).get();
  }

 private:
  WorkerSessionHost* const host_;
  JobMachine* const jobs_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_SERVICE_H_
