#ifndef TANDEM_SERVER_RPC_RPC_SERVER_H_
#define TANDEM_SERVER_RPC_RPC_SERVER_H_

#include <grpcpp/impl/service_type.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/auth/listen_policy.h"
#include "server/rpc/connection_gate.h"
#include "server/rpc/open_calls.h"
#include "server/rpc/rpc_context.h"
#include "server/rpc/token_watch.h"

namespace tandem {

// How an RpcServer is to run.
struct RpcServerOptions {
  // See ConnectionGate; 0: as many as there may be open files.
  int max_connections = 0;
  // What the daemon may use of the machine; what gRPC buffers follows from it. 0: it is not known.
  int64_t memory_bytes = 0;
  UnaryCounts::Limits unary = {};
};

// The public server: the services of tandem.v1, gRPC's health checking (with Watch) and reflection.
class RpcServer {
 public:
  // Larger requests are refused by gRPC itself, with RESOURCE_EXHAUSTED; handlers have limits of their own.
  static constexpr int kMaxReceiveBytes = 16 << 20;

  // Whether Start could listen there now: to be asked before anything is set in motion that a failure would
  // leave half done. `option` is where another address can be given. FAILED_PRECONDITION as Start.
  static absl::Status CheckAddress(const ListenAddress& address, absl::string_view option);

  // Listens and serves. What `context` points to outlives the server.
  // FAILED_PRECONDITION: the address is in use by another program, is not one of this machine's, may not be
  // used, or is no known name; the message names it.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const ListenAddress& address, std::shared_ptr<grpc::ServerCredentials> credentials, RpcContext context,
      const RpcServerOptions& options = {});
  // Stop, without grace.
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // Where it listens, with the port that was found.
  const ListenAddress& address() const { return address_; }

  // What health checks are told, but for NOT_SERVING once the server stops. SERVING from Start on.
  void SetServing(bool serving);

  // Says NOT_SERVING to health checks, and waits until no stream is open, but no longer than `timeout`.
  void AwaitStreams(absl::Duration timeout);

  // Says NOT_SERVING to health checks, ends streams with UNAVAILABLE, lets calls in progress finish within
  // `grace`, then ends those too. Returns when no handler can run any more. Idempotent. The context's
  // Lifecycle must have been stopped before.
  void Stop(absl::Duration grace);

 private:
  RpcServer(const ListenAddress& address, RpcContext context, const UnaryCounts::Limits& unary)
      : address_(address), context_(std::move(context)), calls_(unary) {}

  // Says NOT_SERVING to health checks from now on.
  void EndServing();

  ListenAddress address_;
  const RpcContext context_;
  OpenCalls calls_;
  std::unique_ptr<TokenWatch> token_watch_;
  Mutex health_mutex_;
  // It stops: health checks are told so for good.
  bool stopping_ ABSL_GUARDED_BY(health_mutex_) = false;
  std::unique_ptr<grpc::Service> job_service_;
  std::unique_ptr<grpc::Service> model_service_;
  std::unique_ptr<grpc::Service> dataset_service_;
  std::unique_ptr<grpc::Service> sweep_service_;
  std::unique_ptr<grpc::Service> daemon_service_;
  // Before the server, which has what it let in.
  std::unique_ptr<ConnectionGate> gate_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_RPC_SERVER_H_
