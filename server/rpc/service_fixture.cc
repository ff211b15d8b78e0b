#include "server/rpc/service_fixture.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/training/checkpoint_fit.h"
#include "server/auth/server_credentials.h"
#include "server/rpc/call_audit.h"
#include "server/store/timestamps.h"

namespace tandem {

absl::StatusOr<AdmittedJob> FakeAdmission::Admit(const v1::JobSpec& spec) const {
  if (spec.name().empty()) {
    FieldViolations violations;
    violations.Add("spec.name", "is missing");
    violations.Add("spec.model.layers[0].dense.units", "is -1; it must be at least 1");
    return WithReason(violations.ToStatus(), "INVALID_SPEC");
  }
  if (absl::Notification* const end = slow; end != nullptr && spec.name() == "slow") {
    ++slow_ones;
    end->WaitForNotification();
  }
  if (data_is_gone) return FieldError("spec.dataset.name", "names no data set");
  const auto may_be_old = [](const std::string& url) { return IsUrl(url) && !absl::StrContains(url, '#'); };
  if (spec.name() == "newest" && spec.has_dataset() &&
      (may_be_old(spec.dataset().csv().train()) || may_be_old(spec.initial_weights().file()))) {
    return FieldError("spec.model", "does not fit the older content");
  }
  AdmittedJob job;
  job.spec = spec;
  job.spec.mutable_replicas()->set_count(std::max(1, spec.replicas().count()));
  job.planned_memory_bytes = 1000;
  return job;
}

absl::Status FakeAdmission::CheckCheckpoint(const AdmittedJob& job,
                                            const SafetensorsHeader& checkpoint) const {
  if (job.spec.name() == "other-network") return FieldError("spec.model", "does not fit the checkpoint");
  if (job.spec.training().epochs() == 0 && job.spec.training().steps() == 0) return absl::OkStatus();
  v1::JobSpec spec = job.spec;
  spec.mutable_training()->set_global_batch_size(std::max<int64_t>(1, spec.training().global_batch_size()));
  DatasetInfo data;
  data.train_samples = 10;
  return CheckSomethingIsLeft(spec, data, *StateOfCheckpoint(checkpoint));
}

void FakeWorkers::Start(const v1::Job& job, const std::vector<v1::Device>&) {
  MutexLock lock(&mutex_);
  started_.push_back(JobId(job.name()));
}

void FakeWorkers::OnMoved(const v1::Job& job) {
  if (job.state() != v1::JOB_STATE_CANCELLING) return;
  MutexLock lock(&mutex_);
  cancelling_.push_back(JobId(job.name()));
}

void FakeWorkers::AwaitStarted(const std::string& id) { Await(&started_, id); }
void FakeWorkers::AwaitCancelling(const std::string& id) { Await(&cancelling_, id); }

void FakeWorkers::Await(std::vector<std::string>* ids, const std::string& id) {
  const auto has = [ids, &id] { return std::find(ids->begin(), ids->end(), id) != ids->end(); };
  MutexLock lock(&mutex_);
  ASSERT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&has), absl::Seconds(30))) << "nothing came for " << id;
}

void ServiceFixture::SetUp() {
  std::string path = ::testing::TempDir() + "/service_XXXXXX";
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  auto folder = StateFolder::Lock(path);
  ASSERT_TRUE(folder.ok()) << folder.status();
  folder_ = *std::move(folder);
  auto store = Store::Open(folder_->DatabasePath());
  ASSERT_TRUE(store.ok()) << store.status();
  store_ = *std::move(store);
  backups_ = std::make_unique<Backups>(
      Backups::Options{.folder = folder_->BackupsFolder(), .database_path = folder_->DatabasePath()});
  events_ = std::make_unique<EventHub>(store_.get());
  jobs_ = std::make_unique<JobMachine>(store_.get(), events_.get(), Clock::Real(), folder_->JobsFolder());
  std::vector<v1::Device> devices(2);
  for (int i = 0; i < 2; ++i) {
    devices[i].set_name(absl::StrCat("devices/cpu:", i));
    devices[i].set_kind(v1::DEVICE_KIND_CPU);
    devices[i].set_index(i);
    devices[i].set_memory_bytes(1 << 20);
  }
  inventory_ = std::make_unique<Inventory>(devices);
  datasets_ = std::make_unique<DatasetCatalog>(std::vector<std::string>{}, &reader_);
  if (remote_ != nullptr) datasets_->SetRemote(remote_, folder_->PublicFolder());
  Uploads::Options uploads;
  uploads.folder = folder_->UploadsFolder();
  uploads.most_bytes_each = kMostUploadBytes;
  uploads.least_free = 0;
  auto opened = Uploads::Open(std::move(uploads), Env::Real(), Clock::Real(), {});
  ASSERT_TRUE(opened.ok()) << opened.status();
  uploads_ = *std::move(opened);
  registry_ = std::make_unique<DatasetRegistry>(store_.get(), uploads_.get(), datasets_.get(), Clock::Real(),
                                                folder_->PublicFolder());
  datasets_->SetRegistered(registry_.get());
  Scheduler::Options scheduling;
  scheduling.quota = [this](const std::string& user) { return Quota(user); };
  scheduler_ = std::make_unique<Scheduler>(jobs_.get(), store_.get(), inventory_.get(), &policy_, &workers_,
                                           Clock::Real(), scheduling);
  jobs_->SetWaitingSource(scheduler_.get());
  jobs_->SetMostQueued(max_queued_jobs_);
  tokens_ = std::make_unique<TokenRegistry>(store_.get(), Clock::Real());
  authenticator_ = std::make_shared<const Authenticator>(kToken, tokens_.get());
  drain_ = std::make_unique<JobDrain>(jobs_.get());
  jobs_->AddObserver(&workers_);
  jobs_->AddObserver(scheduler_.get());
  jobs_->AddObserver(drain_.get());
  scheduler_->Start();
  auto files = FileWatcher::Create();
  ASSERT_TRUE(files.ok()) << files.status();
  files_ = *std::move(files);
  pool_ = std::make_unique<FairPool>(2, 1);
  user_pool_ = std::make_unique<FairPool>(4, 2, room_);

  ModelWorkers::Options models;
  const char* const sources = getenv("TEST_SRCDIR");
  models.worker_program =
      absl::StrCat(sources == nullptr ? "" : sources, "/tandem/server/workers/testing/fake_model_worker");
  models_ = std::make_unique<ModelWorkers>(std::move(models));

  auto audit = AuditLog::Open({.folder = folder_->path()}, Env::Real(), Clock::Real());
  ASSERT_TRUE(audit.ok()) << audit.status();
  audit_ = *std::move(audit);

  RpcServer::Parts parts;
  parts.lifecycle = &lifecycle_;
  parts.jobs = jobs_.get();
  parts.events = events_.get();
  parts.scheduler = scheduler_.get();
  parts.admission = &admission_;
  parts.datasets = datasets_.get();
  parts.remote = remote_;
  parts.registry = registry_.get();
  parts.uploads = uploads_.get();
  parts.backups = backups_.get();
  parts.drain = drain_.get();
  parts.pool = pool_.get();
  parts.user_pool = user_pool_.get();
  parts.files = files_.get();
  parts.models = models_.get();
  parts.daemon.set_version("1.2.3");
  parts.authenticator = authenticator_.get();
  parts.tokens = tokens_.get();
  parts.quota = scheduling.quota;
  parts.disk_use = [this](const std::string&) -> int64_t { return disk_use_; };
  parts.is_removing = [this](const std::string&) -> bool { return is_removing_; };
  limits_ = std::make_unique<CallLimits>(scheduling.quota, Clock::Real());
  parts.limits = limits_.get();
  parts.hooks.started = [this](absl::string_view method) { NoteCall(absl::StrCat(method, " started")); };
  parts.hooks.ended = [this](const EndedCall& call) {
    EXPECT_GE(call.duration, absl::ZeroDuration());
    NoteCall(absl::StrCat(call.method, " ", absl::StatusCodeToString(call.status.code()),
                          call.is_stream ? " stream" : ""));
  };
  parts.hooks = WithAudit(std::move(parts.hooks), audit_.get());
  auto server =
      RpcServer::Start({"127.0.0.1", 0}, PlainCredentials(authenticator_, AuditRefusals(audit_.get())),
                       std::move(parts), {.unary = unary_limits_});
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  channel_ = NewChannel();
  stub_ = v1::JobService::NewStub(channel_);
  model_stub_ = v1::ModelService::NewStub(channel_);
  dataset_stub_ = v1::DatasetService::NewStub(channel_);
  sweep_stub_ = v1::SweepService::NewStub(channel_);
  daemon_stub_ = v1::DaemonService::NewStub(channel_);
}

void ServiceFixture::TearDown() {
  lifecycle_.Stop();
  drain_->Abort(lifecycle_.CheckServing());
  for (FairPool* const pool : {user_pool_.get(), pool_.get()}) pool->Drop();
  server_->Stop(absl::Seconds(2));
  models_->Stop();
  scheduler_->Stop();
  user_pool_->Stop();
  pool_->Stop();
  events_->Close(lifecycle_.CheckServing());
  store_->Close();
  audit_->Close();
}

std::string ServiceFixture::MakeToken(const std::string& user, v1::TokenRole role, absl::Duration lifetime) {
  v1::CreateTokenRequest request;
  request.mutable_token()->set_user(user);
  request.mutable_token()->set_role(role);
  if (lifetime != absl::InfiniteDuration()) {
    *request.mutable_token()->mutable_expire_time() = TimestampOf(absl::Now() + lifetime);
  }
  v1::CreateTokenResponse response;
  const grpc::Status status = daemon_stub_->CreateToken(Context().get(), request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.secret();
}

void ServiceFixture::Revoke(const std::string& user) {
  v1::Token revoked;
  const grpc::Status status =
      daemon_stub_->RevokeToken(Context().get(), Named<v1::RevokeTokenRequest>("tokens/" + user), &revoked);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

grpc::Status ServiceFixture::CancelAs(const std::string& token, const std::string& job) {
  v1::Job cancelled;
  return stub_->CancelJob(Context(token).get(), Named<v1::CancelJobRequest>(job), &cancelled);
}

void ServiceFixture::SetQuota(const UserQuota& quota) {
  MutexLock lock(&quota_mutex_);
  quota_ = quota;
}

UserQuota ServiceFixture::Quota(const std::string& user) {
  if (user == kAdminUser) return {};
  MutexLock lock(&quota_mutex_);
  return quota_;
}

void ServiceFixture::NoteCall(std::string call) {
  MutexLock lock(&calls_mutex_);
  calls_.push_back(std::move(call));
}

std::shared_ptr<grpc::Channel> ServiceFixture::NewChannel(grpc::ChannelArguments arguments) const {
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(server_->address().ToString(), grpc::InsecureChannelCredentials(),
                                   arguments);
}

grpc::Status ServiceFixture::CallRaw(const std::string& path, const grpc::ByteBuffer& request,
                                     grpc::ClientContext* context, grpc::ByteBuffer* reply) {
  std::promise<grpc::Status> done;
  grpc::GenericStub(channel_).UnaryCall(context, path, {}, &request, reply,
                                        [&done](grpc::Status status) { done.set_value(std::move(status)); });
  return done.get_future().get();
}

grpc::Status ServiceFixture::CallWith(const std::string& path, const std::string& message,
                                      std::unique_ptr<grpc::ClientContext> context) {
  const grpc::Slice slice(message);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer reply;
  return CallRaw(path, request, context.get(), &reply);
}

std::vector<std::string> ServiceFixture::Calls() {
  MutexLock lock(&calls_mutex_);
  return calls_;
}

std::unique_ptr<grpc::ClientContext> ServiceFixture::Context(const std::string& token) {
  auto context = std::make_unique<grpc::ClientContext>();
  if (!token.empty()) context->AddMetadata("authorization", absl::StrCat("Bearer ", token));
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  return context;
}

v1::CreateJobRequest ServiceFixture::Request(const std::string& name, const std::string& request_id) {
  v1::CreateJobRequest request;
  request.mutable_spec()->set_name(name);
  request.set_request_id(request_id);
  return request;
}

std::string ServiceFixture::Create(const std::string& name) {
  v1::Job job;
  const grpc::Status status = stub_->CreateJob(Context().get(), Request(name), &job);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return job.name();
}

void ServiceFixture::Report(const std::string& job, std::vector<internal::v1::WorkerEvent> events) {
  std::promise<absl::Status> done;
  jobs_->ApplyWorkerEvents(
      Id(job), 1, std::move(events),
      [&done](absl::StatusOr<JobMachine::WorkerPosition> position) { done.set_value(position.status()); });
  const absl::Status status = done.get_future().get();
  ASSERT_TRUE(status.ok()) << status;
}

internal::v1::WorkerEvent ServiceFixture::Finished(int64_t sequence, v1::JobState state) {
  internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
  event.mutable_finished()->set_state(state);
  event.mutable_finished()->set_reason(state == v1::JOB_STATE_SUCCEEDED ? v1::STATE_REASON_COMPLETED
                                                                        : v1::STATE_REASON_CANCEL_REQUESTED);
  return event;
}

void ServiceFixture::Finish(const std::string& job, int64_t sequence, v1::JobState state) {
  Report(job, {Finished(sequence, state)});
  scheduler_->ReleaseLease(Id(job), 1, /*crashed=*/false);
}

void ServiceFixture::AppendFile(const std::string& job, const std::string& file, const std::string& content) {
  const std::string folder = absl::StrCat(folder_->JobsFolder(), "/", Id(job));
  std::filesystem::create_directories(folder);
  std::ofstream(absl::StrCat(folder, "/", file), std::ios::app | std::ios::binary) << content;
}

}  // namespace tandem
