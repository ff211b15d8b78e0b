#include <gmock/gmock.h>

#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "engine/base/env.h"
#include "engine/base/error_reason.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/training/model_file.h"
#include "engine/training/training_state.h"
#include "server/rpc/service_fixture.h"
#include "server/store/eventually.h"

namespace tandem {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Tests checkpoints of jobs, and jobs that continue from them.
class ForkTest : public ServiceFixture {
 protected:
  static constexpr char kTensor[] = "shared/dense_1.weight";

  // Makes the job's worker write and report a checkpoint.
  void WriteCheckpointOf(const std::string& job, int64_t sequence, int64_t step,
                         const std::string& tensor = kTensor, const v1::BestResult& best = {}) {
    AppendFile(job, "worker.log", "");
    const std::string file = CheckpointFileName(step);
    TrainingState state;
    state.step = step;
    state.steps_per_epoch = 10;
    state.epoch_shares.resize(1);
    state.summary.set_epochs(step / 10);
    if (best.step() > 0) *state.summary.mutable_best() = best;
    std::vector<NamedTensor> tensors;
    tensors.emplace_back(tensor, Tensor::Of<float>(Shape({1}), {static_cast<float>(step)}));
    ASSERT_TRUE(
        tandem::WriteCheckpoint(Env::Real(), absl::StrCat(FolderOf(job), "/", file), ToJson(state), tensors)
            .ok());
    internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
    event.mutable_report()->mutable_checkpoint()->set_step(step);
    event.mutable_report()->mutable_checkpoint()->set_file(file);
    Report(job, {event});
  }
  std::string FolderOf(const std::string& job) const { return jobs_->FolderOf(Id(job)); }
  size_t CountFolders() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_->JobsFolder())) {
      ++count;
    }
    return count;
  }

  // Creates a job with checkpoints of these steps.
  std::string JobWith(const std::vector<int64_t>& steps, v1::CreateJobRequest request = Request("source"),
                      const std::string& tensor = kTensor) {
    request.mutable_spec()->mutable_checkpoints()->set_keep_last(3);
    v1::Job job;
    EXPECT_TRUE(stub_->CreateJob(Context().get(), request, &job).ok());
    workers_.AwaitStarted(Id(job.name()));
    Report(job.name(), {Started(1)});
    int64_t sequence = 1;
    for (const int64_t step : steps) WriteCheckpointOf(job.name(), ++sequence, step, tensor);
    return job.name();
  }

  static v1::ForkJobRequest ForkOf(const std::string& job, int64_t step = -1) {
    v1::ForkJobRequest request;
    request.set_name(job);
    if (step >= 0) request.set_step(step);
    return request;
  }
  grpc::Status Fork(const v1::ForkJobRequest& request, v1::Job* job) {
    return stub_->ForkJob(Context().get(), request, job);
  }
  std::vector<int64_t> Checkpoints(const std::string& job) {
    v1::ListCheckpointsRequest request;
    request.set_job(job);
    v1::ListCheckpointsResponse response;
    const grpc::Status status = stub_->ListCheckpoints(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::vector<int64_t> steps;
    for (const v1::Checkpoint& checkpoint : response.checkpoints()) steps.push_back(checkpoint.step());
    return steps;
  }
};

TEST_F(ForkTest, CheckpointsAreThoseThatAreThere) {
  const std::string job = JobWith({10, 20, 30, 40});
  EXPECT_THAT(Checkpoints(job), ElementsAre(40, 30, 20));
  std::filesystem::remove(absl::StrCat(FolderOf(job), "/", CheckpointFileName(30)));
  EXPECT_THAT(Checkpoints(job), ElementsAre(40, 20));
  EXPECT_THAT(Checkpoints(Create("none")), IsEmpty());
  v1::ListCheckpointsRequest request;
  v1::ListCheckpointsResponse response;
  EXPECT_EQ(stub_->ListCheckpoints(Context().get(), request, &response).error_code(),
            StatusCode::INVALID_ARGUMENT);
  request.set_job("jobs/nobody");
  EXPECT_EQ(stub_->ListCheckpoints(Context().get(), request, &response).error_code(), StatusCode::NOT_FOUND);
}

TEST_F(ForkTest, AForkHasItsCheckpointForItself) {
  const std::string source = JobWith({10, 20});
  v1::Job fork;
  grpc::Status status = Fork(ForkOf(source), &fork);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(fork.forked_from().job(), source);
  EXPECT_EQ(fork.forked_from().step(), 20);
  EXPECT_EQ(fork.spec().name(), "source");
  EXPECT_EQ(fork.last_checkpoint().epoch(), 2);
  EXPECT_THAT(Checkpoints(fork.name()), ElementsAre(20));

  v1::ForkJobRequest request = ForkOf(source, 10);
  request.mutable_spec()->set_name("another");
  request.set_request_id("once");
  v1::Job other;
  status = Fork(request, &other);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(other.spec().name(), "another");
  v1::Job again;
  ASSERT_TRUE(Fork(request, &again).ok());
  EXPECT_EQ(again.name(), other.name());
  request.set_step(20);
  EXPECT_EQ(Fork(request, &again).error_code(), StatusCode::ALREADY_EXISTS);
  // A user who guesses another's request id does not even learn that it is a fork.
  const std::string ann = MakeToken("ann");
  v1::CreateJobRequest create;
  *create.mutable_spec() = request.spec();
  create.set_request_id("once");
  for (const grpc::Status& refused : {stub_->CreateJob(Context(ann).get(), create, &again),
                                      stub_->ForkJob(Context(ann).get(), request, &again)}) {
    EXPECT_EQ(refused.error_code(), StatusCode::ALREADY_EXISTS);
    EXPECT_THAT(refused.error_message(), HasSubstr("was already used by another user"));
    EXPECT_EQ(refused.error_message().find(other.name()), std::string::npos);
  }

  // The other job and its files are deleted.
  Finish(source, 4, v1::JOB_STATE_SUCCEEDED);
  std::filesystem::remove_all(FolderOf(source));
  EXPECT_THAT(Checkpoints(other.name()), ElementsAre(10));
  const absl::StatusOr<CheckpointContents> read =
      ReadCheckpoint(Env::Real(), absl::StrCat(FolderOf(other.name()), "/", CheckpointFileName(10)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->tensors.begin()->second.data<float>()[0], 10);
}

TEST_F(ForkTest, WhatIsRefusedLeavesNothing) {
  const std::string source = JobWith({10});
  const std::string ann = MakeToken("ann");
  SetQuota({.max_queued_jobs = 1});
  v1::ForkJobRequest request;
  request.set_name(source);
  request.mutable_spec()->set_name("fork");
  v1::Job fork;
  // There are devices for one of them; the other waits.
  ASSERT_TRUE(stub_->ForkJob(Context(ann).get(), request, &fork).ok());
  workers_.AwaitStarted(Id(fork.name()));
  ASSERT_TRUE(stub_->ForkJob(Context(ann).get(), request, &fork).ok());
  const size_t folders = CountFolders();
  const auto reserved = [this] {
    SQLite::Database database(folder_->DatabasePath(), SQLite::OPEN_READONLY);
    return database.execAndGet("SELECT count(*) FROM deleted_jobs").getInt();
  };
  // The ids of created jobs stay reserved.
  const int before = reserved();
  const grpc::Status refused = stub_->ForkJob(Context(ann).get(), request, &fork);
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED) << refused.error_message();
  EXPECT_EQ(reserved(), before);
  EXPECT_EQ(CountFolders(), folders);
  SetQuota({});
  // A repeated request that finds its job releases its own id.
  request.set_request_id("twice");
  std::vector<std::thread> calls;
  std::vector<v1::Job> jobs(4);
  for (v1::Job& job : jobs) {
    calls.emplace_back([&] { EXPECT_TRUE(stub_->ForkJob(Context().get(), request, &job).ok()); });
  }
  for (std::thread& call : calls) call.join();
  for (const v1::Job& job : jobs) EXPECT_EQ(job.name(), jobs[0].name());
  EXPECT_EQ(CountFolders(), folders + 1);
  Eventually([&] { return reserved() <= before + 1; });
  EXPECT_EQ(reserved(), before + 1);
}

TEST_F(ForkTest, ARequestIdIsOfOneSource) {
  const std::string one = JobWith({10});
  const std::string other = JobWith({10});
  // Both at once, so that neither finds the other's job before creating its own.
  std::vector<grpc::Status> results(2);
  std::vector<v1::Job> forks(2);
  std::vector<std::thread> calls;
  for (int i = 0; i < 2; ++i) {
    calls.emplace_back([&, i] {
      v1::ForkJobRequest request;
      request.set_name(i == 0 ? one : other);
      request.set_request_id("the-same");
      results[i] = stub_->ForkJob(Context().get(), request, &forks[i]);
    });
  }
  for (std::thread& call : calls) call.join();
  EXPECT_NE(results[0].ok(), results[1].ok());
  const int made = results[0].ok() ? 0 : 1;
  EXPECT_EQ(results[1 - made].error_code(), StatusCode::ALREADY_EXISTS) << results[1 - made].error_message();
  EXPECT_EQ(forks[made].forked_from().job(), made == 0 ? one : other);
  // A new job does not match it either.
  v1::CreateJobRequest create = Request("source", "the-same");
  v1::Job job;
  EXPECT_EQ(stub_->CreateJob(Context().get(), create, &job).error_code(), StatusCode::ALREADY_EXISTS);
}

TEST_F(ForkTest, WhatLeavesNothingToTrainIsRefused) {
  const std::string source = JobWith({10, 20});
  const size_t folders = CountFolders();
  v1::Job fork;
  v1::ForkJobRequest request = ForkOf(source);
  request.mutable_spec()->set_name("longer");
  v1::Training& training = *request.mutable_spec()->mutable_training();
  training.set_epochs(2);
  for (const bool validate_only : {true, false}) {
    request.set_validate_only(validate_only);
    const grpc::Status status = Fork(request, &fork);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("training.epochs: is 2"));
    EXPECT_THAT(status.error_message(), HasSubstr("raise training.epochs"));
    EXPECT_THAT(status.error_details(), HasSubstr("NOTHING_TO_TRAIN"));
  }
  training.clear_epochs();
  training.set_steps(20);
  const grpc::Status status = Fork(request, &fork);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("training.steps: is 20"));
  EXPECT_EQ(CountFolders(), folders);

  training.set_steps(21);
  EXPECT_TRUE(Fork(request, &fork).ok());
  training.clear_steps();
  training.set_epochs(3);
  EXPECT_TRUE(Fork(request, &fork).ok());
  // An earlier checkpoint leaves something to train.
  training.set_epochs(2);
  request.set_step(10);
  EXPECT_TRUE(Fork(request, &fork).ok());
  // With fewer steps per epoch, two epochs are still done.
  request.set_step(20);
  training.set_global_batch_size(7);
  EXPECT_THAT(Fork(request, &fork).error_details(), HasSubstr("NOTHING_TO_TRAIN"));
  training.set_epochs(3);
  EXPECT_TRUE(Fork(request, &fork).ok());
}

TEST_F(ForkTest, WhatCannotBe) {
  const std::string source = JobWith({10, 20});
  const size_t folders = CountFolders();
  v1::Job fork;
  grpc::Status status = Fork(ForkOf(source, 15), &fork);
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(),
              HasSubstr("has no checkpoint of step 15; give one of the steps 20, 10"));
  EXPECT_EQ(Fork(ForkOf("jobs/nobody"), &fork).error_code(), StatusCode::NOT_FOUND);
  status = Fork(ForkOf(Create("none")), &fork);
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("has no checkpoint yet"));
  EXPECT_EQ(Fork(ForkOf(""), &fork).error_code(), StatusCode::INVALID_ARGUMENT);

  v1::ForkJobRequest misfit = ForkOf(source);
  misfit.mutable_spec()->set_name("other-network");
  status = Fork(misfit, &fork);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("spec.model"));
  // Only validates.
  v1::ForkJobRequest question = ForkOf(source);
  question.set_validate_only(true);
  ASSERT_TRUE(Fork(question, &fork).ok());
  EXPECT_EQ(fork.name(), "");
  EXPECT_EQ(fork.forked_from().step(), 20);

  // The error names the damaged checkpoint and the usable ones.
  const std::string newest = absl::StrCat(FolderOf(source), "/", CheckpointFileName(20));
  ASSERT_TRUE(tandem::WriteCheckpoint(Env::Real(), newest, R"({"step": "x"})", {}).ok());
  question.set_step(20);
  status = Fork(question, &fork);
  const std::string others = "use another checkpoint with --from-checkpoint STEP, of step 10";
  EXPECT_EQ(status.error_code(), StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(), HasSubstr(others));
  question.clear_step();
  EXPECT_THAT(Fork(question, &fork).error_message(), HasSubstr(others));
  question.set_step(10);
  ASSERT_TRUE(Fork(question, &fork).ok());
  EXPECT_EQ(fork.forked_from().step(), 10);
  question.clear_step();
  std::filesystem::remove(absl::StrCat(FolderOf(source), "/", CheckpointFileName(10)));
  status = Fork(question, &fork);
  EXPECT_EQ(status.error_code(), StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(), HasSubstr("cannot use the checkpoint " + newest + ": "));
  EXPECT_EQ(CountFolders(), folders);
}

TEST_F(ForkTest, ACheckpointIsReadWholeBeforeAJobGoesOnFromIt) {
  const std::string source = JobWith({10, 20, 30});
  const size_t folders = CountFolders();
  // Damage in the last tensor, which no header shows.
  const std::string path = absl::StrCat(FolderOf(source), "/", CheckpointFileName(30));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end).put('\x55').flush();
  v1::Job fork;
  for (const int64_t step : {-1, 30}) {
    const grpc::Status status = Fork(ForkOf(source, step), &fork);
    EXPECT_EQ(status.error_code(), StatusCode::DATA_LOSS);
    EXPECT_THAT(status.error_message(), HasSubstr(path));
    EXPECT_THAT(status.error_message(), HasSubstr("the tensor \"shared/dense_1.weight\" was changed"));
    EXPECT_THAT(status.error_message(),
                HasSubstr("use another checkpoint with --from-checkpoint STEP, of step 20, 10"));
    EXPECT_THAT(status.error_details(), HasSubstr("CHECKPOINT_DAMAGED"));
  }
  EXPECT_EQ(CountFolders(), folders);
  // Validation reads only the part before the tensors.
  v1::ForkJobRequest question = ForkOf(source, 30);
  question.set_validate_only(true);
  EXPECT_TRUE(Fork(question, &fork).ok());
  ASSERT_TRUE(Fork(ForkOf(source, 20), &fork).ok());
  EXPECT_EQ(fork.forked_from().step(), 20);
}

TEST_F(ForkTest, AJobThatHasEndedGetsNoCheckpoint) {
  const std::string source = JobWith({});
  v1::Job fork;
  EXPECT_THAT(Fork(ForkOf(source), &fork).error_message(), HasSubstr("has no checkpoint yet"));
  Finish(source, 2, v1::JOB_STATE_FAILED);
  EXPECT_THAT(Fork(ForkOf(source), &fork).error_message(), EndsWith("has no checkpoint"));
}

TEST_F(ForkTest, TheBestModelIsThatOfTheCheckpointsBestResult) {
  const std::string source = JobWith({});
  const auto result = [](int64_t step, double value) {
    v1::BestResult best;
    best.set_epoch(step / 10);
    best.set_step(step);
    best.set_metric("loss");
    best.set_value(value);
    return best;
  };
  // Writes the best model like the worker.
  const auto write_best = [&](const std::optional<v1::BestResult>& best) {
    const std::string path = FolderOf(source) + "/best.safetensors";
    EXPECT_TRUE(WriteModel(Env::Real(), path, v1::JobSpec(), {}, TrainedOn(), best).ok());
  };
  const auto report_best = [&](int64_t sequence, const v1::BestResult& best) {
    internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
    *event.mutable_report()->mutable_validation()->mutable_best() = best;
    Report(source, {event});
  };
  const auto has_best = [&] {
    v1::Job fork;
    const grpc::Status status = Fork(ForkOf(source, 10), &fork);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const std::string path = FolderOf(fork.name()) + "/best.safetensors";
    if (!std::filesystem::exists(path)) return false;
    EXPECT_TRUE(IsModelOf(ReadSafetensorsHeader(path)->metadata, result(10, 0.5)));
    return true;
  };
  WriteCheckpointOf(source, 2, 10, kTensor, result(10, 0.5));
  EXPECT_FALSE(has_best()) << "there is none";
  write_best(result(10, 0.5));
  EXPECT_TRUE(has_best()) << "of which the record does not say yet";
  report_best(3, result(10, 0.5));
  EXPECT_TRUE(has_best());
  write_best(result(20, 0.25));
  EXPECT_FALSE(has_best()) << "of which the record does not say yet";
  // With other statistics.
  write_best(result(10, 0.25));
  EXPECT_FALSE(has_best());
  write_best(std::nullopt);
  EXPECT_FALSE(has_best()) << "a file that does not say it";
  std::ofstream(FolderOf(source) + "/best.safetensors", std::ios::app) << "x";
  EXPECT_FALSE(has_best()) << "a file that cannot be read";
  EXPECT_TRUE(std::filesystem::exists(FolderOf(source) + "/best.safetensors"));
  write_best(result(10, 0.5));
  report_best(4, result(20, 0.25));
  EXPECT_TRUE(has_best()) << "the next one is not in its place yet";
}

// A small request may name much data and wait for it.
class LargeForkTest : public ForkTest {
 protected:
  LargeForkTest() { room_.bytes = 300'000; }

  // Checks that a fork of this job named "slow" keeps 200,000 bytes until its reply.
  void ExpectCounts(const std::string& source) {
    absl::Notification end;
    admission_.slow = &end;
    std::thread call([&] {
      v1::Job fork;
      const grpc::Status status = Fork(ForkOf(source), &fork);
      EXPECT_TRUE(status.ok()) << status.error_message();
    });
    while (admission_.slow_ones < 1) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(GetReason(user_pool_->HoldMore("admin", 100'001).status()), "TOO_MANY_WAITING_CALLS");
    end.Notify();
    call.join();
    EXPECT_TRUE(user_pool_->HoldMore("admin", 300'000).ok());
  }
};

TEST_F(LargeForkTest, CountsWithItsSpec) {
  v1::CreateJobRequest request = Request("slow");
  request.mutable_spec()->mutable_model()->add_layers()->set_name(std::string(100'000, 'x'));
  ExpectCounts(JobWith({10}, std::move(request)));
}

TEST_F(LargeForkTest, CountsWithWhatItsCheckpointHas) {
  ExpectCounts(JobWith({10}, Request("slow"), "shared/" + std::string(100'000, 'x')));
}

}  // namespace
}  // namespace tandem
