#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "engine/base/error_reason.h"
#include "engine/base/mutex.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/data/data_digest.h"
#include "engine/training/training_state.h"
#include "server/rpc/service_fixture.h"
#include "server/workers/kept_weights.h"

namespace tandem {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

// Jobs that started from another job's model, which was deleted, and failed.
class ResumeTest : public ServiceFixture {
 protected:
  // With `checkpoint`, the database knows a checkpoint; no file is written.
  std::string FailedJob(bool checkpoint) {
    const std::string source = Create("source");
    workers_.AwaitStarted(Id(source));
    Report(source, {Started(1)});
    Finish(source, 2, v1::JOB_STATE_SUCCEEDED);
    v1::CreateJobRequest request = Request("next");
    request.mutable_spec()->mutable_initial_weights()->mutable_artifact()->set_job(source);
    v1::Job job;
    EXPECT_TRUE(stub_->CreateJob(Context().get(), request, &job).ok());
    workers_.AwaitStarted(Id(job.name()));
    std::vector<internal::v1::WorkerEvent> events = {Started(1)};
    if (checkpoint) {
      events.emplace_back().set_worker_sequence(2);
      events.back().mutable_report()->mutable_checkpoint()->set_step(10);
      events.back().mutable_report()->mutable_checkpoint()->set_file("checkpoint-10.safetensors");
    }
    Report(job.name(), events);
    Finish(job.name(), static_cast<int64_t>(events.size()) + 1, v1::JOB_STATE_FAILED);
    google::protobuf::Empty empty;
    EXPECT_TRUE(stub_->DeleteJob(Context().get(), Named<v1::DeleteJobRequest>(source), &empty).ok());
    return job.name();
  }
  grpc::Status Resume(const std::string& job) {
    v1::Job resumed;
    return stub_->ResumeJob(Context().get(), Named<v1::ResumeJobRequest>(job), &resumed);
  }
  void ExpectRefused(const std::string& job) {
    const grpc::Status status = Resume(job);
    EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(status.error_message(), HasSubstr("was deleted"));
    EXPECT_THAT(status.error_details(), HasSubstr("INITIAL_WEIGHTS_DELETED"));
    EXPECT_EQ(jobs_->Get(Id(job))->state(), v1::JOB_STATE_FAILED);
  }
};

TEST_F(ResumeTest, WithTheWeightsThatItKeeps) {
  const std::string job = FailedJob(/*checkpoint=*/false);
  ExpectRefused(job);
  const std::string kept = KeptWeightsPath(jobs_->FolderOf(Id(job)));
  std::filesystem::create_directories(std::filesystem::path(kept).parent_path());
  std::ofstream(kept) << "weights";
  const grpc::Status resumed = Resume(job);
  EXPECT_TRUE(resumed.ok()) << resumed.error_message();
}

// The data differ from the digests in the checkpoint.
TEST_F(ResumeTest, NotWithDataThatChanged) {
  v1::CreateJobRequest request = Request("changed");
  v1::DatasetSpec& dataset = *request.mutable_spec()->mutable_dataset();
  dataset.mutable_synthetic()->set_classes(2);
  v1::Job job;
  ASSERT_TRUE(stub_->CreateJob(Context().get(), request, &job).ok());
  workers_.AwaitStarted(Id(job.name()));
  Report(job.name(), {Started(1)});
  Finish(job.name(), 2, v1::JOB_STATE_FAILED);
  TrainingState state;
  state.step = 10;
  state.steps_per_epoch = 5;
  state.epoch_shares.resize(1);
  AppendFile(job.name(), "worker.log", "");
  const auto write = [&](const DataDigest& digest) {
    state.data = digest;
    const std::string path = absl::StrCat(jobs_->FolderOf(Id(job.name())), "/", CheckpointFileName(10));
    ASSERT_TRUE(WriteCheckpoint(Env::Real(), path, ToJson(state), {}).ok());
  };
  write({{kDataSettings, std::string(64, '0')}});
  const grpc::Status refused = Resume(job.name());
  EXPECT_EQ(refused.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(
      refused.error_message(),
      HasSubstr("the settings of the data set changed since the checkpoint of step 10; restore the old data, "
                "or resume with --accept-changed-data"));
  EXPECT_THAT(refused.error_details(), HasSubstr("DATA_CHANGED"));
  EXPECT_EQ(jobs_->Get(Id(job.name()))->state(), v1::JOB_STATE_FAILED);
  v1::ResumeJobRequest accepting;
  accepting.set_name(job.name());
  accepting.set_accept_changed_data(true);
  v1::Job resumed;
  EXPECT_TRUE(stub_->ResumeJob(Context().get(), accepting, &resumed).ok());
}

TEST_F(ResumeTest, WithTheDataOfItsCheckpoint) {
  v1::CreateJobRequest request = Request("same");
  v1::DatasetSpec& dataset = *request.mutable_spec()->mutable_dataset();
  dataset.mutable_synthetic()->set_classes(2);
  v1::Job job;
  ASSERT_TRUE(stub_->CreateJob(Context().get(), request, &job).ok());
  workers_.AwaitStarted(Id(job.name()));
  Report(job.name(), {Started(1)});
  Finish(job.name(), 2, v1::JOB_STATE_FAILED);
  TrainingState state;
  state.step = 10;
  state.steps_per_epoch = 5;
  state.epoch_shares.resize(1);
  state.data = *DigestData(dataset);
  AppendFile(job.name(), "worker.log", "");
  const std::string path = absl::StrCat(jobs_->FolderOf(Id(job.name())), "/", CheckpointFileName(10));
  ASSERT_TRUE(WriteCheckpoint(Env::Real(), path, ToJson(state), {}).ok());
  const grpc::Status resumed = Resume(job.name());
  EXPECT_TRUE(resumed.ok()) << resumed.error_message();
}

// The worker reads the folder: a restored database may know checkpoints that are gone.
TEST_F(ResumeTest, NotFromACheckpointThatIsGone) {
  const std::string job = FailedJob(/*checkpoint=*/true);
  ASSERT_EQ(jobs_->Get(Id(job))->last_checkpoint().step(), 10);
  ExpectRefused(job);
}

// The message must not promise a checkpoint that is gone.
TEST_F(ResumeTest, WhatIsSaidGoesByTheFolder) {
  const auto resume = [&](const std::vector<std::string>& files) {
    const std::string job = Create("job");
    workers_.AwaitStarted(Id(job));
    internal::v1::WorkerEvent checkpoint = MakeWorkerEvent(2);
    checkpoint.mutable_report()->mutable_checkpoint()->set_step(30);
    checkpoint.mutable_report()->mutable_checkpoint()->set_file("checkpoint-30.safetensors");
    Report(job, {Started(1), checkpoint});
    Finish(job, 3, v1::JOB_STATE_FAILED);
    for (const std::string& file : files) AppendFile(job, file, "state");
    v1::Job resumed;
    EXPECT_TRUE(stub_->ResumeJob(Context().get(), Named<v1::ResumeJobRequest>(job), &resumed).ok());
    return resumed.message();
  };
  EXPECT_EQ(resume({}), "Resumed. Its checkpoint of step 30 is gone, so it starts from the beginning.");
}

// Checkpoints since the backup are also unknown.
TEST_F(ResumeTest, FromACheckpointOfWhichTheDatabaseDoesNotKnow) {
  const std::string job = FailedJob(/*checkpoint=*/false);
  ASSERT_FALSE(jobs_->Get(Id(job))->has_last_checkpoint());
  AppendFile(job, "checkpoint-20.safetensors", "state");
  const grpc::Status resumed = Resume(job);
  EXPECT_TRUE(resumed.ok()) << resumed.error_message();
}

// Has all data at once, or after being told.
class SlowRemote : public RemoteData {
 public:
  void EnsureUrls(std::vector<FieldUrl> urls, const std::string&, absl::Duration, UrlsDone done) override {
    std::vector<std::string> same;
    for (const FieldUrl& one : urls) same.push_back(one.url);
    if (!slow) return done(same);
    MutexLock lock(&mutex_);
    waits_ = [same, done = std::move(done)]() mutable { done(same); };
  }
  absl::StatusOr<std::string> LocalPath(const std::string&, PathKind) const override { return "/nowhere"; }
  void FetchPublicSet(const std::string&, const std::string&, absl::Duration,
                      absl::AnyInvocable<void(absl::Status)> done) override {
    done(absl::OkStatus());
  }

  // Blocks until a call waits for data, and returns its continuation.
  absl::AnyInvocable<void()> AwaitOne() {
    MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](absl::AnyInvocable<void()>* waits) { return *waits != nullptr; }, &waits_));
    return std::move(waits_);
  }

  std::atomic<bool> slow = false;

 private:
  Mutex mutex_;
  absl::AnyInvocable<void()> waits_ ABSL_GUARDED_BY(mutex_);
};

class SlowDataTest : public ResumeTest {
 protected:
  SlowDataTest() {
    remote_ = &data_;
    room_.bytes = 300'000;
  }
  v1::CreateJobRequest LargeRequest() {
    v1::CreateJobRequest request = Request("job");
    request.mutable_spec()->mutable_dataset()->mutable_csv()->set_train("https://example.com/" +
                                                                        std::string(80'000, 'x'));
    return request;
  }
  void ExpectCountsWhileItWaits(std::thread& call) {
    absl::AnyInvocable<void()> go_on = data_.AwaitOne();
    EXPECT_EQ(GetReason(user_pool_->HoldMore("admin", 100'000).status()), "TOO_MANY_WAITING_CALLS");
    go_on();
    call.join();
    EXPECT_TRUE(user_pool_->HoldMore("admin", 300'000).ok());
  }
  SlowRemote data_;
};

TEST_F(SlowDataTest, WhatWaitsForDataCountsWithItsDataSet) {
  const v1::CreateJobRequest request = LargeRequest();
  v1::Job job;
  ASSERT_TRUE(stub_->CreateJob(Context().get(), request, &job).ok());
  workers_.AwaitStarted(Id(job.name()));
  Report(job.name(), {Started(1)});
  Finish(job.name(), 2, v1::JOB_STATE_FAILED);
  data_.slow = true;
  std::thread call([&] {
    const grpc::Status status = Resume(job.name());
    EXPECT_TRUE(status.ok()) << status.error_message();
  });
  ExpectCountsWhileItWaits(call);
}

// A request counts apart from its further memory.
TEST_F(SlowDataTest, ANewJobThatWaitsForDataCountsWithItsDataSet) {
  const v1::CreateJobRequest request = LargeRequest();
  data_.slow = true;
  std::thread call([&] {
    v1::Job job;
    const grpc::Status status = stub_->CreateJob(Context().get(), request, &job);
    EXPECT_TRUE(status.ok()) << status.error_message();
  });
  ExpectCountsWhileItWaits(call);
}

}  // namespace
}  // namespace tandem
