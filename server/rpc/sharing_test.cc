#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "server/rpc/service_fixture.h"

namespace tandem {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

// Tests users, their tokens and quotas, priorities, the queue, and devices out of service.
class SharingTest : public ServiceFixture {
 protected:
  v1::CreateTokenRequest TokenFor(const std::string& user) {
    v1::CreateTokenRequest request;
    request.mutable_token()->set_user(user);
    return request;
  }
  grpc::Status CreateAs(const std::string& token, v1::Job* job, int replicas = 1, int priority = 0) {
    v1::CreateJobRequest request = Request("job");
    request.mutable_spec()->mutable_replicas()->set_count(replicas);
    request.mutable_spec()->set_priority(priority);
    return stub_->CreateJob(Context(token).get(), request, job);
  }
  grpc::Status SetPriority(const std::string& token, const std::string& job, int priority,
                           const std::string& path = "priority") {
    v1::UpdateJobRequest request;
    request.mutable_job()->set_name(job);
    request.mutable_job()->set_priority(priority);
    if (!path.empty()) request.mutable_update_mask()->add_paths(path);
    v1::Job updated;
    return stub_->UpdateJob(Context(token).get(), request, &updated);
  }
  grpc::Status Drain(const std::string& token, const std::string& device) {
    v1::DrainDeviceRequest request;
    request.set_name(device);
    request.set_reason("a new disk");
    v1::Device drained;
    return daemon_stub_->DrainDevice(Context(token).get(), request, &drained);
  }
};

TEST_F(SharingTest, ATokenIsItsUsersUntilItIsRevoked) {
  const std::string secret = MakeToken("ann");
  v1::Job job;
  ASSERT_TRUE(CreateAs(secret, &job).ok());
  EXPECT_EQ(job.user(), "ann");
  ASSERT_TRUE(CreateAs(kToken, &job).ok());
  EXPECT_EQ(job.user(), "admin");

  v1::ListTokensResponse tokens;
  ASSERT_TRUE(daemon_stub_->ListTokens(Context().get(), {}, &tokens).ok());
  ASSERT_EQ(tokens.tokens_size(), 1);
  EXPECT_EQ(tokens.tokens(0).name(), "tokens/ann");
  EXPECT_EQ(tokens.ShortDebugString().find(secret), std::string::npos);
  v1::CreateTokenResponse made;
  EXPECT_EQ(daemon_stub_->CreateToken(Context().get(), TokenFor("ann"), &made).error_code(),
            StatusCode::ALREADY_EXISTS);
  for (const char* const wrong : {"", "admin", "-x", "has space"}) {
    EXPECT_EQ(daemon_stub_->CreateToken(Context().get(), TokenFor(wrong), &made).error_code(),
              StatusCode::INVALID_ARGUMENT)
        << wrong;
  }

  v1::RevokeTokenRequest revoke;
  revoke.set_name("ann");
  v1::Token revoked;
  EXPECT_EQ(daemon_stub_->RevokeToken(Context().get(), revoke, &revoked).error_code(),
            StatusCode::INVALID_ARGUMENT);
  revoke.set_name("tokens/ann");
  ASSERT_TRUE(daemon_stub_->RevokeToken(Context().get(), revoke, &revoked).ok());
  EXPECT_EQ(daemon_stub_->RevokeToken(Context().get(), revoke, &revoked).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(CreateAs(secret, &job).error_code(), StatusCode::UNAUTHENTICATED);
  const std::string again = MakeToken("ann");
  EXPECT_NE(again, secret);
  EXPECT_TRUE(CreateAs(again, &job).ok());
}

TEST_F(SharingTest, UsersChangeTheirOwnJobsAlone) {
  const std::string ann = MakeToken("ann");
  const std::string bob = MakeToken("bob");
  const std::string chief = MakeToken("chief", v1::TOKEN_ROLE_ADMIN);
  v1::Job job;
  ASSERT_TRUE(CreateAs(ann, &job).ok());
  // Everyone may read.
  v1::Job seen;
  EXPECT_TRUE(stub_->GetJob(Context(bob).get(), Named<v1::GetJobRequest>(job.name()), &seen).ok());
  const grpc::Status refused = CancelAs(bob, job.name());
  EXPECT_EQ(refused.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("it belongs to \"ann\""));
  EXPECT_EQ(SetPriority(bob, job.name(), -1).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(CancelAs(bob, "jobs/none").error_code(), StatusCode::NOT_FOUND);
  EXPECT_TRUE(SetPriority(ann, job.name(), -1).ok());
  EXPECT_TRUE(SetPriority(chief, job.name(), 7).ok());
  EXPECT_TRUE(CancelAs(ann, job.name()).ok());
  EXPECT_EQ(Drain(ann, "devices/cpu:0").error_code(), StatusCode::PERMISSION_DENIED);
  v1::ShutdownResponse shutdown;
  EXPECT_EQ(daemon_stub_->Shutdown(Context(ann).get(), {}, &shutdown).error_code(),
            StatusCode::PERMISSION_DENIED);
  v1::CreateTokenResponse made;
  EXPECT_EQ(daemon_stub_->CreateToken(Context(ann).get(), TokenFor("eve"), &made).error_code(),
            StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(daemon_stub_->CreateToken(Context(chief).get(), TokenFor("eve"), &made).ok());
}

TEST_F(SharingTest, ARequestIdIsItsUsersAlone) {
  const std::string ann = MakeToken("ann");
  const std::string bob = MakeToken("bob");
  v1::Job job;
  ASSERT_TRUE(stub_->CreateJob(Context(ann).get(), Request("a", "r1"), &job).ok());
  v1::Job again;
  ASSERT_TRUE(stub_->CreateJob(Context(ann).get(), Request("a", "r1"), &again).ok());
  EXPECT_EQ(again.name(), job.name());
  // Bob gets neither her job nor a job of his own.
  const grpc::Status replayed = stub_->CreateJob(Context(bob).get(), Request("a", "r1"), &again);
  EXPECT_EQ(replayed.error_code(), StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(replayed.error_message(), HasSubstr("was already used by another user"));
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(stub_->ListJobs(Context(bob).get(), {}, &jobs).ok());
  EXPECT_EQ(jobs.jobs_size(), 1);
}

// Whatever else differs: an error about it would reveal what the other user created.
TEST_F(SharingTest, ARequestIdOfAnotherTellsNothing) {
  const std::string ann = MakeToken("ann");
  const std::string bob = MakeToken("bob");
  const auto expect_nothing = [](const grpc::Status& status, const std::string& name) {
    EXPECT_EQ(status.error_code(), StatusCode::ALREADY_EXISTS);
    EXPECT_THAT(status.error_message(), HasSubstr("was already used by another user"));
    EXPECT_THAT(status.error_message(), testing::Not(HasSubstr(name)));
  };
  v1::Job job, other;
  ASSERT_TRUE(stub_->CreateJob(Context(ann).get(), Request("hers", "r1"), &job).ok());
  expect_nothing(stub_->CreateJob(Context(bob).get(), Request("his", "r1"), &other), "hers");
  v1::ForkJobRequest fork;
  fork.set_name("jobs/none-aaaaaa");
  fork.set_request_id("r1");
  expect_nothing(stub_->ForkJob(Context(bob).get(), fork, &other), "hers");
  *fork.mutable_spec() = Request("hers").spec();
  expect_nothing(stub_->ForkJob(Context(bob).get(), fork, &other), "hers");

  v1::CreateSweepRequest sweep;
  sweep.mutable_sweep()->mutable_base()->set_name("hers");
  sweep.mutable_sweep()->set_display_name("hers");
  sweep.mutable_sweep()->add_grid()->set_field("training.epochs");
  sweep.mutable_sweep()->mutable_grid(0)->add_values()->set_number_value(1);
  sweep.set_request_id("r1");
  v1::Sweep swept;
  ASSERT_TRUE(sweep_stub_->CreateSweep(Context(ann).get(), sweep, &swept).ok());
  expect_nothing(sweep_stub_->CreateSweep(Context(bob).get(), sweep, &swept), "hers");
  sweep.mutable_sweep()->mutable_grid(0)->mutable_values(0)->set_number_value(2);
  expect_nothing(sweep_stub_->CreateSweep(Context(bob).get(), sweep, &swept), "hers");

  // Uploads are identified by their files and user.
  v1::CreateUploadRequest upload;
  upload.mutable_upload()->set_manifest_sha256(std::string(32, 'x'));
  upload.mutable_upload()->set_files(1);
  v1::Upload hers, again, his;
  ASSERT_TRUE(dataset_stub_->CreateUpload(Context(ann).get(), upload, &hers).ok());
  ASSERT_TRUE(dataset_stub_->CreateUpload(Context(ann).get(), upload, &again).ok());
  EXPECT_EQ(again.name(), hers.name());
  ASSERT_TRUE(dataset_stub_->CreateUpload(Context(bob).get(), upload, &his).ok());
  EXPECT_NE(his.name(), hers.name());
  EXPECT_EQ(his.user(), "bob");
}

TEST_F(SharingTest, PrioritiesAreCheckedAndAboveZeroForAdministrators) {
  const std::string ann = MakeToken("ann");
  v1::Job job;
  EXPECT_EQ(CreateAs(ann, &job, 1, /*priority=*/1).error_code(), StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(CreateAs(ann, &job, 1, /*priority=*/-3).ok());
  EXPECT_EQ(job.priority(), -3);
  // A job without a worker would be cancelled at once.
  workers_.AwaitStarted(Id(job.name()));
  EXPECT_EQ(SetPriority(ann, job.name(), 1).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(SetPriority(kToken, job.name(), 101).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(SetPriority(kToken, job.name(), 1, "spec.name").error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(SetPriority(kToken, job.name(), 1, "").error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(SetPriority(kToken, "lenet", 1).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(SetPriority(kToken, "jobs/none", 1).error_code(), StatusCode::NOT_FOUND);
  ASSERT_TRUE(CancelAs(ann, job.name()).ok());
  workers_.AwaitCancelling(Id(job.name()));
  Finish(job.name(), 1, v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(SetPriority(kToken, job.name(), 1).error_code(), StatusCode::FAILED_PRECONDITION);
  v1::Job paused;
  EXPECT_EQ(stub_->PauseJob(Context(ann).get(), Named<v1::PauseJobRequest>(job.name()), &paused).error_code(),
            StatusCode::FAILED_PRECONDITION);
}

TEST_F(SharingTest, QuotasAreKept) {
  SetQuota({.max_devices = 1, .max_queued_jobs = 2});
  const std::string ann = MakeToken("ann");
  v1::Job job;
  const grpc::Status large = CreateAs(ann, &job, /*replicas=*/2);
  EXPECT_EQ(large.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(large.error_message(), HasSubstr("the quota of \"ann\" is 1"));
  ASSERT_TRUE(CreateAs(ann, &job).ok());
  workers_.AwaitStarted(Id(job.name()));
  ASSERT_TRUE(CreateAs(ann, &job).ok());
  ASSERT_TRUE(CreateAs(ann, &job).ok());
  const grpc::Status many = CreateAs(ann, &job);
  EXPECT_EQ(many.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(many.error_message(), HasSubstr("\"ann\" has 2 of at most 2 queued jobs"));
  EXPECT_TRUE(CreateAs(kToken, &job, /*replicas=*/2).ok());

  v1::ListQueueResponse queue;
  ASSERT_TRUE(daemon_stub_->ListQueue(Context(ann).get(), {}, &queue).ok());
  EXPECT_EQ(queue.total_size(), 3);
  for (const v1::QueuedJob& waiting : queue.jobs()) {
    EXPECT_EQ(waiting.waiting().reason(),
              waiting.user() == "ann" ? v1::Waiting::REASON_QUOTA : v1::Waiting::REASON_DEVICES_BUSY)
        << waiting.ShortDebugString();
    EXPECT_FALSE(waiting.waiting().message().empty());
  }
  v1::ListQueueRequest wrong;
  wrong.set_page_size(-1);
  EXPECT_EQ(daemon_stub_->ListQueue(Context().get(), wrong, &queue).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST_F(SharingTest, DevicesGoOutOfServiceAndBack) {
  EXPECT_EQ(Drain(kToken, "devices/cpu:9").error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(Drain(kToken, "cpu:0").error_code(), StatusCode::INVALID_ARGUMENT);
  ASSERT_TRUE(Drain(kToken, "devices/cpu:0").ok());
  v1::DrainDeviceRequest request;
  request.set_name("devices/cpu:0");
  // A reason has characters, not bytes.
  for (int i = 0; i < 200; ++i) request.mutable_reason()->append("\xc3\xa9");
  v1::Device drained;
  EXPECT_TRUE(daemon_stub_->DrainDevice(Context().get(), request, &drained).ok());
  request.mutable_reason()->append("x");
  const grpc::Status long_reason = daemon_stub_->DrainDevice(Context().get(), request, &drained);
  EXPECT_EQ(long_reason.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(long_reason.error_message(), HasSubstr("has 201 characters"));
  ASSERT_TRUE(Drain(kToken, "devices/cpu:0").ok());
  v1::ListDevicesResponse devices;
  ASSERT_TRUE(daemon_stub_->ListDevices(Context().get(), {}, &devices).ok());
  EXPECT_EQ(devices.devices(0).state(), v1::DEVICE_STATE_DRAINED);
  EXPECT_EQ(devices.devices(0).state_message(), "a new disk");
  const auto exclude = Named<v1::ExcludeDeviceRequest>("devices/cpu:0");
  v1::Device device;
  ASSERT_TRUE(daemon_stub_->ExcludeDevice(Context().get(), exclude, &device).ok());
  v1::Job job;
  const grpc::Status never = CreateAs(kToken, &job, /*replicas=*/2);
  EXPECT_EQ(never.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(never.error_message(), HasSubstr("excluded"));
  const auto resume = Named<v1::ResumeDeviceRequest>("devices/cpu:0");
  ASSERT_TRUE(daemon_stub_->ResumeDevice(Context().get(), resume, &device).ok());
  EXPECT_EQ(device.state(), v1::DEVICE_STATE_ACTIVE);
  EXPECT_TRUE(CreateAs(kToken, &job, /*replicas=*/2).ok());
}

TEST_F(SharingTest, BackupsAreForAdministrators) {
  const std::string ann = MakeToken("ann");
  const std::string boss = MakeToken("boss", v1::TOKEN_ROLE_ADMIN);
  v1::Backup backup;
  v1::ListBackupsResponse listed;
  EXPECT_EQ(daemon_stub_->CreateBackup(Context(ann).get(), {}, &backup).error_code(),
            StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(daemon_stub_->ListBackups(Context(ann).get(), {}, &listed).error_code(),
            StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(daemon_stub_->ListBackups(Context(boss).get(), {}, &listed).ok());
  EXPECT_EQ(listed.backups_size(), 0);
  const grpc::Status made = daemon_stub_->CreateBackup(Context(boss).get(), {}, &backup);
  ASSERT_TRUE(made.ok()) << made.error_message();
  EXPECT_EQ(backup.sha256().size(), 64);
  EXPECT_GT(backup.size_bytes(), 0);
  EXPECT_FALSE(backup.automatic());
  ASSERT_TRUE(daemon_stub_->ListBackups(Context(boss).get(), {}, &listed).ok());
  ASSERT_EQ(listed.backups_size(), 1);
  EXPECT_EQ(listed.backups(0).name(), backup.name());
  EXPECT_EQ(listed.backups(0).path(), backup.path());
}

}  // namespace
}  // namespace tandem
