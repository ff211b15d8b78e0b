#ifndef TANDEM_SERVER_RPC_RPC_CONTEXT_H_
#define TANDEM_SERVER_RPC_RPC_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/admission/admission.h"
#include "server/admission/dataset_catalog.h"
#include "server/admission/memo.h"
#include "server/admission/remote_data.h"
#include "server/auth/authenticator.h"
#include "server/auth/call_limits.h"
#include "server/auth/token_registry.h"
#include "server/datasets/dataset_registry.h"
#include "server/datasets/uploads.h"
#include "server/events/event_hub.h"
#include "server/jobs/job_machine.h"
#include "server/rpc/call_hooks.h"
#include "server/rpc/fair_pool.h"
#include "server/rpc/file_watcher.h"
#include "server/rpc/job_drain.h"
#include "server/rpc/lifecycle.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/user_quota.h"
#include "server/store/backups.h"
#include "server/workers/model_workers.h"
#include "tandem/v1/daemon_service.pb.h"

namespace tandem {

// The objects that handlers use. Handlers keep no state. Everything must outlive the server.
struct RpcContext {
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
  std::function<UserQuota(const std::string&)> quota;
  // GetDaemon's answer.
  v1::Daemon daemon;
  DatasetRegistry* registry = nullptr;
  Uploads* uploads = nullptr;
  // Updates the variable fields of a GPU's status; may block. Null: no GPUs.
  std::function<void(v1::GpuStatus*)> refresh_gpu;
  // Returns the cluster's partitions; may block. Null: no cluster.
  std::function<absl::StatusOr<std::vector<v1::ClusterPartition>>()> partitions;
  CallHooks calls;
  Backups* backups = nullptr;
  // Returns the disk space of a user's jobs; must not block. Null: neither jobs nor uploads count.
  std::function<int64_t(const std::string& user)> disk_use;
  // Returns true if some of this space belongs to deleted jobs and will soon be free. Null: never.
  std::function<bool(const std::string& user)> is_removing;
  // Artifacts whose checksums were found right.
  std::shared_ptr<Memo<bool>> checked_artifacts = std::make_shared<Memo<bool>>();
  // Null: no limits.
  CallLimits* limits = nullptr;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_RPC_CONTEXT_H_
