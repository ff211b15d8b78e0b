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

// The options of an RpcServer.
struct RpcServerOptions {
  // See ConnectionGate. 0: limited by the open files.
  int max_connections = 0;
  // The memory that the daemon may use, in bytes. Bounds gRPC's buffers. 0: unknown.
  int64_t memory_bytes = 0;
  UnaryCounts::Limits unary = {};
};

// The public server: the services of tandem.v1, gRPC's health checking (with Watch) and reflection.
class RpcServer {
 public:
  // gRPC refuses larger requests with RESOURCE_EXHAUSTED. Handlers have their own limits.
  static constexpr int kMaxReceiveBytes = 16 << 20;

  // Checks if Start could listen at the address now. Call it before any step that a failed Start would leave
  // half done. The error names `option` as the way to choose another address. FAILED_PRECONDITION as Start.
  static absl::Status CheckAddress(const ListenAddress& address, absl::string_view option);

  // Listens and serves. The pointers in `context` must outlive the server. FAILED_PRECONDITION names the
  // address: it is in use, is not this machine's, may not be used, or is no known name.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const ListenAddress& address, std::shared_ptr<grpc::ServerCredentials> credentials, RpcContext context,
      const RpcServerOptions& options = {});
  // Calls Stop without grace.
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // Returns the address, with the real port.
  const ListenAddress& address() const { return address_; }

  // Sets the state of health checks. SERVING after Start. After the stop, always NOT_SERVING.
  void SetServing(bool serving);

  // Sets health checks to NOT_SERVING, and blocks until no stream is open, at most for `timeout`.
  void AwaitStreams(absl::Duration timeout);

  // Sets health checks to NOT_SERVING, ends streams with UNAVAILABLE, and lets calls finish within `grace`.
  // Then ends the remaining calls. Returns when no handler can run any more. Idempotent. Stop the context's
  // Lifecycle first.
  void Stop(absl::Duration grace);

 private:
  RpcServer(const ListenAddress& address, RpcContext context, const UnaryCounts::Limits& unary)
      : address_(address), context_(std::move(context)), calls_(unary) {}

  // Sets health checks to NOT_SERVING for good.
  void EndServing();

  ListenAddress address_;
  const RpcContext context_;
  OpenCalls calls_;
  std::unique_ptr<TokenWatch> token_watch_;
  Mutex health_mutex_;
  // True after EndServing.
  bool stopping_ ABSL_GUARDED_BY(health_mutex_) = false;
  std::unique_ptr<grpc::Service> job_service_;
  std::unique_ptr<grpc::Service> model_service_;
  std::unique_ptr<grpc::Service> dataset_service_;
  std::unique_ptr<grpc::Service> sweep_service_;
  std::unique_ptr<grpc::Service> daemon_service_;
  // Destroyed after the server, which has the gate's connections.
  std::unique_ptr<ConnectionGate> gate_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_RPC_SERVER_H_
