#ifndef TANDEM_SERVER_RPC_RPC_SERVER_H_
#define TANDEM_SERVER_RPC_RPC_SERVER_H_

#include <grpcpp/impl/service_type.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/admission/admission.h"
#include "server/admission/dataset_catalog.h"
#include "server/admission/memo.h"
#include "server/admission/remote_data.h"
#include "server/auth/authenticator.h"
#include "server/auth/call_limits.h"
#include "server/auth/listen_policy.h"
#include "server/auth/token_registry.h"
#include "server/datasets/dataset_registry.h"
#include "server/datasets/uploads.h"
#include "server/events/event_hub.h"
#include "server/jobs/job_machine.h"
#include "server/rpc/call_hooks.h"
#include "server/rpc/call_parts.h"
#include "server/rpc/connection_gate.h"
#include "server/rpc/fair_pool.h"
#include "server/rpc/file_watcher.h"
#include "server/rpc/job_drain.h"
#include "server/rpc/job_requests.h"
#include "server/rpc/lifecycle.h"
#include "server/rpc/local_data.h"
#include "server/rpc/open_calls.h"
#include "server/rpc/quotas.h"
#include "server/rpc/token_watch.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/user_quota.h"
#include "server/store/backups.h"
#include "server/workers/model_workers.h"
#include "tandem/v1/daemon_service.pb.h"

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

  // The parts of the daemon that the server uses.
  struct Parts {
    Lifecycle* lifecycle = nullptr;
    JobMachine* jobs = nullptr;
    EventHub* events = nullptr;
    Scheduler* scheduler = nullptr;
    const Admission* admission = nullptr;
    const DatasetCatalog* datasets = nullptr;
    // Null: nothing is fetched.
    RemoteData* remote = nullptr;
    JobDrain* drain = nullptr;
    // For short reads of the database and files, and for parsing large requests.
    FairPool* pool = nullptr;
    // For work that depends on the size of users' data: admission, uploads, removals.
    FairPool* user_pool = nullptr;
    FileWatcher* files = nullptr;
    ModelWorkers* models = nullptr;
    const Authenticator* authenticator = nullptr;
    TokenRegistry* tokens = nullptr;
    // Returns a user's quota.
    std::function<UserQuota(const std::string& user)> quota;
    // GetDaemon's answer.
    v1::Daemon daemon;
    DatasetRegistry* registry = nullptr;
    Uploads* uploads = nullptr;
    // Updates the variable fields of a GPU's status; may block. Null: no GPUs.
    std::function<void(v1::GpuStatus*)> refresh_gpu;
    // Returns the cluster's partitions; may block. Null: no cluster.
    std::function<absl::StatusOr<std::vector<v1::ClusterPartition>>()> partitions;
    CallHooks hooks;
    Backups* backups = nullptr;
    // Returns the disk space of a user's jobs; must not block. Null: neither jobs nor uploads count.
    std::function<int64_t(const std::string& user)> disk_use;
    // Returns true if some of this space belongs to deleted jobs and will soon be free. Null: never.
    std::function<bool(const std::string& user)> is_removing;
    // Null: no limits.
    CallLimits* limits = nullptr;
  };

  // Checks if Start could listen at the address now. FAILED_PRECONDITION as Start; the message names `option`
  // as the way to choose another address. Call it first, so that an address in use stops the daemon before it
  // has changed anything.
  static absl::Status CheckAddress(const ListenAddress& address, absl::string_view option);

  // Listens and serves. The pointers in `parts` must outlive the server. FAILED_PRECONDITION names the
  // address: it is in use, is not this machine's, may not be used, or is no known name.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const ListenAddress& address, std::shared_ptr<grpc::ServerCredentials> credentials, Parts parts,
      const RpcServerOptions& options = {});
  // Calls Stop without grace. Before the destruction, call Stop and then stop the pools of `parts`: the work
  // of ended streams uses this object.
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // Returns the address, with the real port.
  const ListenAddress& address() const { return address_; }

  // Sets the state of health checks: SERVING after Start. After AwaitStreams or Stop it is NOT_SERVING for
  // good.
  void SetServing(bool serving);

  // Sets health checks to NOT_SERVING, and blocks until no stream is open, at most for `timeout`.
  void AwaitStreams(absl::Duration timeout);

  // Sets health checks to NOT_SERVING, ends streams with UNAVAILABLE, and lets calls finish within `grace`.
  // Then ends the remaining calls. Returns when no handler can run any more. Idempotent.
  // Stop the Lifecycle first.
  void Stop(absl::Duration grace);

 private:
  RpcServer(const ListenAddress& address, Parts parts, const UnaryCounts::Limits& unary);

  // Sets health checks to NOT_SERVING for good.
  void EndServing();

  ListenAddress address_;
  const Parts parts_;
  OpenCalls calls_;
  const CallParts call_parts_;
  const rpc::LocalData local_data_;
  const rpc::Quotas quotas_;
  const rpc::JobRequests requests_;
  Memo<bool> checked_artifacts_;
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
