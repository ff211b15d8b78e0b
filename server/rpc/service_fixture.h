#ifndef TANDEM_SERVER_RPC_SERVICE_FIXTURE_H_
#define TANDEM_SERVER_RPC_SERVICE_FIXTURE_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/admission/admission.h"
#include "server/admission/read_dataset.h"
#include "server/admission/remote_data.h"
#include "server/auth/audit_log.h"
#include "server/datasets/dataset_registry.h"
#include "server/datasets/uploads.h"
#include "server/events/event_hub.h"
#include "server/jobs/job_machine.h"
#include "server/jobs/job_machine_fixture.h"
#include "server/rpc/rpc_server.h"
#include "server/scheduler/backfill_policy.h"
#include "server/scheduler/inventory.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/worker_starter.h"
#include "server/store/state_folder.h"
#include "server/store/store.h"
#include "tandem/v1/daemon_service.grpc.pb.h"
#include "tandem/v1/dataset_service.grpc.pb.h"
#include "tandem/v1/job_service.grpc.pb.h"
#include "tandem/v1/model_service.grpc.pb.h"
#include "tandem/v1/sweep_service.grpc.pb.h"

namespace tandem {

// Accepts every named spec. Refuses other specs like real admission, and all specs if the data is gone.
// The job "newest" fits only content that was just fetched: URLs with their digests.
class FakeAdmission : public Admission {
 public:
  absl::StatusOr<AdmittedJob> Admit(const v1::JobSpec& spec) const override;
  absl::StatusOr<AdmittedJob> AdmitMatched(const v1::JobSpec& spec,
                                           const DataNames& /*names*/) const override {
    return Admit(spec);
  }
  // Accepts every checkpoint that leaves something to train on ten samples, except for the job
  // "other-network".
  absl::Status CheckCheckpoint(const AdmittedJob& job, const SafetensorsHeader& checkpoint) const override;

  std::atomic<bool> data_is_gone = false;
  // Jobs named "slow" wait for it if not null.
  std::atomic<absl::Notification*> slow = nullptr;
  mutable std::atomic<int> slow_ones = 0;
};

// Starts no processes: tests report for the workers.
class FakeWorkers : public WorkerStarter, public JobObserver {
 public:
  void Start(const v1::Job& job, const std::vector<v1::Device>& devices) override;
  void OnMoved(const v1::Job& job) override;
  // Blocks until the job's worker was started or told to stop.
  void AwaitStarted(const std::string& id);
  void AwaitCancelling(const std::string& id);

 private:
  void Await(std::vector<std::string>* ids, const std::string& id);
  Mutex mutex_;
  std::vector<std::string> started_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> cancelling_ ABSL_GUARDED_BY(mutex_);
};

// The real server over a real store on a loopback socket. Only admission and workers are fakes.
class ServiceFixture : public ::testing::Test {
 protected:
  static constexpr char kToken[] = "the-token-of-this-test";
  static constexpr int64_t kMostUploadBytes = 8 << 20;

  void SetUp() override;
  void TearDown() override;

  // Returns a context with the token and a deadline.
  static std::unique_ptr<grpc::ClientContext> Context(const std::string& token = kToken);
  static v1::CreateJobRequest Request(const std::string& name, const std::string& request_id = "");
  // Returns a request whose `name` is this.
  template <typename NamedRequest>
  static NamedRequest Named(const std::string& name) {
    NamedRequest request;
    request.set_name(name);
    return request;
  }
  // Creates a job and returns its name, "jobs/<id>".
  std::string Create(const std::string& name);
  static std::string Id(const std::string& job) { return job.substr(5); }

  // Reports events of a started job's worker; blocks until they are durable.
  void Report(const std::string& job, std::vector<internal::v1::WorkerEvent> events);
  static internal::v1::WorkerEvent Finished(int64_t sequence, v1::JobState state);
  // Reports the end and returns the devices.
  void Finish(const std::string& job, int64_t sequence, v1::JobState state);

  // Appends to a file in a job's folder, which is created.
  void AppendFile(const std::string& job, const std::string& file, const std::string& content);

  // Makes a user's token and returns its secret.
  std::string MakeToken(const std::string& user, v1::TokenRole role = v1::TOKEN_ROLE_UNSPECIFIED,
                        absl::Duration lifetime = absl::InfiniteDuration());
  // Revokes the user's token.
  void Revoke(const std::string& user);
  // Cancels a job with this token.
  grpc::Status CancelAs(const std::string& token, const std::string& job);

  // Limits each user except admin from now on.
  void SetQuota(const UserQuota& quota);

  // Returns a new connection to the server.
  std::shared_ptr<grpc::Channel> NewChannel(grpc::ChannelArguments arguments = {}) const;

  // Calls the unary method at `path`, such as "/tandem.v1.JobService/GetJob", and blocks for the end.
  grpc::Status CallRaw(const std::string& path, const grpc::ByteBuffer& request, grpc::ClientContext* context,
                       grpc::ByteBuffer* reply);
  // The same with a message of these bytes. Drops the reply.
  grpc::Status CallWith(const std::string& path, const std::string& message,
                        std::unique_ptr<grpc::ClientContext> context = Context());

  // Returns the calls that the server's CallHooks observed: "CreateJob started", "CreateJob OK", "WatchJob
  // NOT_FOUND stream".
  std::vector<std::string> Calls();

  std::unique_ptr<StateFolder> folder_;
  std::unique_ptr<FairPool> pool_;
  // The pool's room. Set before SetUp.
  FairPool::Room room_;
  std::unique_ptr<FairPool> user_pool_;
  std::unique_ptr<FileWatcher> files_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Backups> backups_;
  std::unique_ptr<EventHub> events_;
  std::unique_ptr<JobMachine> jobs_;
  std::unique_ptr<Inventory> inventory_;
  const BackfillPolicy policy_;
  FakeWorkers workers_;
  FakeAdmission admission_;
  LocalDatasetReader reader_;
  std::unique_ptr<DatasetCatalog> datasets_;
  // Null: nothing is fetched. Set before SetUp.
  RemoteData* remote_ = nullptr;
  std::unique_ptr<Uploads> uploads_;
  std::unique_ptr<DatasetRegistry> registry_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<JobDrain> drain_;
  // Runs //server/workers/testing:fake_model_worker if the test has it.
  std::unique_ptr<ModelWorkers> models_;
  std::unique_ptr<TokenRegistry> tokens_;
  std::shared_ptr<const Authenticator> authenticator_;
  // Set before SetUp.
  UnaryCounts::Limits unary_limits_;
  // The limit of the whole queue. Set before SetUp.
  int64_t max_queued_jobs_ = 0;
  // The disk space of each user's jobs.
  std::atomic<int64_t> disk_use_ = 0;
  std::atomic<bool> is_removing_ = false;
  std::unique_ptr<CallLimits> limits_;
  Lifecycle lifecycle_;
  // audit.log in the state folder.
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> stub_;
  std::unique_ptr<v1::ModelService::Stub> model_stub_;
  std::unique_ptr<v1::DatasetService::Stub> dataset_stub_;
  std::unique_ptr<v1::SweepService::Stub> sweep_stub_;
  std::unique_ptr<v1::DaemonService::Stub> daemon_stub_;

 private:
  void NoteCall(std::string call);
  UserQuota Quota(const std::string& user);

  Mutex quota_mutex_;
  UserQuota quota_ ABSL_GUARDED_BY(quota_mutex_);
  Mutex calls_mutex_;
  std::vector<std::string> calls_ ABSL_GUARDED_BY(calls_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_SERVICE_FIXTURE_H_
