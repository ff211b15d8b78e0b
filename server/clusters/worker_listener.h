#ifndef TANDEM_SERVER_CLUSTERS_WORKER_LISTENER_H_
#define TANDEM_SERVER_CLUSTERS_WORKER_LISTENER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/jobs/job_machine.h"
#include "server/rpc/connection_gate.h"
#include "server/workers/worker_service.h"
#include "server/workers/worker_session.h"

namespace tandem {

// The daemon's key and certificate for workers on a cluster, in PEM. Workers accept this certificate alone.
struct WorkerCertificate {
  std::string key;
  std::string certificate;
};

// Returns the certificate of a state folder, from "worker-listen.key" and "worker-listen.pem". Creates both
// files, for the owner alone, if one is missing. So the next daemon has the same certificate. INTERNAL: the
// system's cryptography failed. Other errors are those of the files.
absl::StatusOr<WorkerCertificate> LoadWorkerCertificate(const std::string& state_folder);

// The TCP listener for workers on a cluster. Strangers reach it too, so a ConnectionGate limits connections,
// and a connection without a worker's stream is closed. server/rpc/LIMITS.md has the limits. Thread-safe.
class WorkerListener {
 public:
  struct Options {
    // A numeric address that the nodes reach, and a port.
    std::string address;
    WorkerCertificate certificate;
    // A worker whose host does not answer for this long is disconnected.
    absl::Duration silence_limit = absl::Seconds(30);
    // The time for a connection's handshakes, and then for the hello of a worker that the host admits.
    absl::Duration hello_limit = kHelloLimit;
  };

  // Starts to listen. `host` and `jobs` must outlive the listener. INVALID_ARGUMENT: not an address.
  // FAILED_PRECONDITION: cannot listen at the address.
  static absl::StatusOr<std::unique_ptr<WorkerListener>> Start(const Options& options,
                                                               WorkerSessionHost* host, JobMachine* jobs);
  // Calls Stop.
  ~WorkerListener();

  // Returns the real port.
  int port() const { return gate_->port(); }
  // Ends all streams. Idempotent.
  void Stop();

 private:
  WorkerListener(WorkerSessionHost* host, JobMachine* jobs, absl::Duration hello_limit)
      : service_(host, jobs, hello_limit) {}

  WorkerStreams service_;
  std::unique_ptr<ConnectionGate> gate_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_WORKER_LISTENER_H_
