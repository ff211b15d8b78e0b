#ifndef TANDEM_SERVER_WORKERS_WORKER_SERVICE_H_
#define TANDEM_SERVER_WORKERS_WORKER_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "absl/time/time.h"
#include "server/jobs/job_machine.h"
#include "server/workers/spool.h"
#include "server/workers/uncompressed_server.h"
#include "server/workers/worker_session.h"
#include "tandem/internal/v1/worker.grpc.pb.h"

namespace tandem {

// The time from a stream's start until the host must have admitted its worker.
inline constexpr absl::Duration kHelloLimit = absl::Seconds(20);

// The gRPC service for workers: each stream is a WorkerSession. Thread-safe.
class WorkerStreams final : public internal::v1::WorkerService::CallbackService {
 public:
  // `host` and `jobs` must outlive the service. A stream ends if the host admits no worker within
  // `hello_limit`.
  WorkerStreams(WorkerSessionHost* host, JobMachine* jobs, absl::Duration hello_limit = kHelloLimit)
      : host_(host), jobs_(jobs), hello_limit_(hello_limit) {}

  // Adds the service to a server for workers alone. The service must outlive the server. The stream of a
  // process that hangs or was cut off ends, because the process answers no keepalives for `silence_limit`.
  void AddTo(grpc::ServerBuilder* builder, absl::Duration silence_limit) {
    builder->RegisterService(this);
    builder->SetMaxReceiveMessageSize(kMaxWorkerEventBytes + 1024);
    RefuseCompressedMessages(builder);
    const int half_limit = static_cast<int>(absl::ToInt64Milliseconds(silence_limit / 2));
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, half_limit);
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, half_limit);
    builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  }

  grpc::ServerBidiReactor<internal::v1::ConnectRequest, internal::v1::ConnectResponse>* Connect(
      grpc::CallbackServerContext* context) override {
    return WorkerSession::Start(host_, jobs_, context, hello_limit_).get();
  }

 private:
  WorkerSessionHost* const host_;
  JobMachine* const jobs_;
  const absl::Duration hello_limit_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_SERVICE_H_
