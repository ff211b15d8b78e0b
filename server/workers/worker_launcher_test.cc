#include "server/workers/worker_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "server/store/temporary_folder.h"
#include "server/workers/job_folder.h"
#include "server/workers/kept_weights.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

v1::Device OfKind(v1::DeviceKind kind) {
  v1::Device device;
  device.set_kind(kind);
  return device;
}

std::vector<std::string> WhatCudaSees(const v1::Device& device) {
  std::vector<std::string> found;
  for (const std::string& variable : WorkerEnvironment({device}, "", {"GPU-b", "GPU-a"})) {
    if (absl::StartsWith(variable, "CUDA_VISIBLE_DEVICES")) found.push_back(variable);
  }
  return found;
}

TEST(WorkerEnvironmentTest, GpusAreNumberedAsDevicesAre) {
  // The daemon's own variable, which it has already read.
  setenv("CUDA_VISIBLE_DEVICES", "3,1", /*overwrite=*/1);
  EXPECT_THAT(WhatCudaSees(OfKind(v1::DEVICE_KIND_GPU)), ElementsAre("CUDA_VISIBLE_DEVICES=GPU-b,GPU-a"));
  EXPECT_THAT(WhatCudaSees(OfKind(v1::DEVICE_KIND_CPU)), ElementsAre("CUDA_VISIBLE_DEVICES="));
}

// Returns a launch of replicas on these devices, "cpu:0" or "gpu:1", shared equally among workers.
internal::v1::WorkerLaunch LaunchOn(const std::vector<std::string>& devices, int workers) {
  internal::v1::WorkerLaunch launch;
  for (const std::string& name : devices) {
    v1::Device* device = launch.add_devices();
    device->set_name("devices/" + name);
    device->set_kind(absl::StartsWith(name, "gpu") ? v1::DEVICE_KIND_GPU : v1::DEVICE_KIND_CPU);
  }
  if (workers > 1) launch.mutable_group()->set_workers(workers);
  return launch;
}

class CollectiveEnvironmentTest : public testing::Test {
 protected:
  CollectiveEnvironmentTest() { Clear(); }
  ~CollectiveEnvironmentTest() override { Clear(); }

 private:
  static void Clear() {
    unsetenv("TANDEM_NCCL");
    unsetenv("TANDEM_COLLECTIVE_TIME_LIMIT");
  }
};

TEST_F(CollectiveEnvironmentTest, TheLimitOfCollectivesIsTheLaunchsUnlessTheEnvironmentHasOne) {
  internal::v1::WorkerLaunch launch = LaunchOn({"gpu:0", "gpu:1"}, 2);
  launch.set_watchdog_seconds(90);
  EXPECT_THAT(CollectiveEnvironment(launch), testing::Contains("TANDEM_COLLECTIVE_TIME_LIMIT=1m30s"));
  setenv("TANDEM_COLLECTIVE_TIME_LIMIT", "2m", /*overwrite=*/1);
  EXPECT_THAT(CollectiveEnvironment(launch), IsEmpty());
  EXPECT_THAT(WorkerEnvironment({OfKind(v1::DEVICE_KIND_GPU)}, "", {"GPU-a"}),
              testing::Contains("TANDEM_COLLECTIVE_TIME_LIMIT=2m"));
  // An empty variable counts as unset. A program would read the first of two.
  setenv("TANDEM_COLLECTIVE_TIME_LIMIT", "", /*overwrite=*/1);
  EXPECT_THAT(CollectiveEnvironment(launch), testing::Contains("TANDEM_COLLECTIVE_TIME_LIMIT=1m30s"));
  EXPECT_THAT(WorkerEnvironment({OfKind(v1::DEVICE_KIND_GPU)}, "", {"GPU-a"}),
              Not(testing::Contains(testing::StartsWith("TANDEM_COLLECTIVE_TIME_LIMIT"))));
}

TEST_F(CollectiveEnvironmentTest, WorkersThatShareAGpuDoWithoutNccl) {
  for (const auto& [devices, workers] : std::vector<std::pair<std::vector<std::string>, int>>{
           {{"gpu:0"}, 1}, {{"gpu:0", "gpu:0"}, 1}, {{"cpu:0", "cpu:1"}, 2}, {{"gpu:0", "gpu:1"}, 2}}) {
    EXPECT_THAT(CollectiveEnvironment(LaunchOn(devices, workers)), IsEmpty());
  }
  EXPECT_THAT(CollectiveEnvironment(LaunchOn({"gpu:0", "gpu:0"}, 2)), ElementsAre("TANDEM_NCCL=0"));
  EXPECT_THAT(CollectiveEnvironment(LaunchOn({"gpu:0", "gpu:1", "gpu:0", "gpu:1"}, 2)),
              ElementsAre("TANDEM_NCCL=0"));
  setenv("TANDEM_NCCL", "1", /*overwrite=*/1);
  EXPECT_THAT(CollectiveEnvironment(LaunchOn({"gpu:0", "gpu:0"}, 2)), IsEmpty());
}

TEST_F(CollectiveEnvironmentTest, WorkersAreStartedWithIt) {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path();
  // Its output goes to the worker's log.
  const std::string program = folder + "/worker.sh";
  std::ofstream(program) << "#!/bin/sh\nexec env\n";
  ASSERT_EQ(chmod(program.c_str(), 0700), 0);
  WorkerLauncher::Options options;
  options.worker_program = program;
  options.resolve_dataset = [](const v1::DatasetSpec& spec) { return spec; };
  options.collective_time_limit = absl::Seconds(90);
  options.gpu_uuids = {"GPU-a", "GPU-b"};
  const WorkerLauncher launcher(std::move(options));
  v1::Job job;
  job.set_name("jobs/a");
  // The missing parent of all jobs' folders is created.
  job.set_folder(folder + "/jobs/a");
  job.set_attempt(1);
  job.mutable_spec()->mutable_replicas()->set_workers(2);
  const internal::v1::WorkerLaunch wanted = LaunchOn({"gpu:0", "gpu:1"}, 2);
  auto processes = launcher.Launch(job, {wanted.devices().begin(), wanted.devices().end()}, "s");
  ASSERT_TRUE(processes.ok()) << processes.status();
  ASSERT_EQ(processes->size(), 2);
  for (int worker = 0; worker < 2; ++worker) {
    pollfd ended = {(*processes)[worker]->pidfd(), POLLIN, 0};
    ASSERT_EQ(poll(&ended, 1, 60'000), 1);
    EXPECT_EQ((*processes)[worker]->Reap().exit_code, 0);
    const JobFolder files(job.folder());
    EXPECT_THAT(ContentOrEmpty(files.LogPath(worker)),
                AllOf(HasSubstr("TANDEM_COLLECTIVE_TIME_LIMIT=1m30s\n"), Not(HasSubstr("TANDEM_NCCL"))));
    EXPECT_THAT(ContentOrEmpty(files.LaunchPath(1, worker)), HasSubstr("watchdog_seconds: 90\n"));
  }
}

// jobs/a, which starts from the model of jobs/b.
class InitialWeightsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_ + "/jobs");
    model_ = folder_ + "/model.safetensors";
    std::ofstream(model_) << "weights";
    options_.worker_program = folder_ + "/worker.sh";
    std::ofstream(options_.worker_program) << "#!/bin/sh\n";
    ASSERT_EQ(chmod(options_.worker_program.c_str(), 0700), 0);
    options_.resolve_dataset = [](const v1::DatasetSpec& spec) { return spec; };
    options_.find_weights = [this](const v1::InitialWeights&) -> absl::StatusOr<ModelFile> {
      if (!std::filesystem::exists(model_)) return absl::InvalidArgumentError("there is no such job");
      return ModelFile{model_, sha256_};
    };
    options_.tell = [this](const v1::Job&, const std::string& message) { told_.push_back(message); };
    UseJob("a");
    job_.mutable_spec()->mutable_initial_weights()->mutable_artifact()->set_job("jobs/b");
  }

  void UseJob(const std::string& id) {
    job_.set_name("jobs/" + id);
    job_.set_folder(folder_ + "/jobs/" + id);
  }
  // Runs the job's worker to its end.
  absl::Status Launch(int attempt) {
    job_.set_attempt(attempt);
    auto processes = WorkerLauncher(options_).Launch(job_, {OfKind(v1::DEVICE_KIND_CPU)}, "s");
    if (!processes.ok()) return processes.status();
    pollfd ended = {(*processes)[0]->pidfd(), POLLIN, 0};
    EXPECT_EQ(poll(&ended, 1, 60'000), 1);
    (*processes)[0]->Reap();
    return absl::OkStatus();
  }
  // Returns the path that the attempt's worker got; empty if none.
  std::string PathGiven(int attempt) const { return Given("initial_weights_path: \"", attempt); }
  std::string Sha256Given(int attempt) const { return Given("initial_weights_sha256: \"", attempt); }
  std::string Given(const std::string& field_name, int attempt) const {
    const std::string text = ContentOrEmpty(JobFolder(job_.folder()).LaunchPath(attempt));
    const size_t field = text.find(field_name);
    if (field == std::string::npos) return "";
    const size_t start = field + field_name.size();
    return text.substr(start, text.find('"', start) - start);
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  std::string model_;
  std::string sha256_ = "0123";
  WorkerLauncher::Options options_;
  v1::Job job_;
  std::vector<std::string> told_;
};

// Otherwise a failed job could not start again after the other job's deletion.
TEST_F(InitialWeightsTest, AnotherJobsModelIsKept) {
  ASSERT_TRUE(Launch(1).ok());
  std::filesystem::remove(model_);
  const absl::Status again = Launch(2);
  ASSERT_TRUE(again.ok()) << again;
  EXPECT_EQ(PathGiven(1), KeptWeightsPath(job_.folder()));
  EXPECT_EQ(PathGiven(2), KeptWeightsPath(job_.folder()));
  EXPECT_EQ(ContentOrEmpty(PathGiven(2)), "weights");
  // The worker may write in the job's folder, so no name of the model is there.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(job_.folder())) {
    EXPECT_FALSE(std::filesystem::equivalent(entry.path(), PathGiven(2))) << entry.path();
  }
  EXPECT_THAT(told_, IsEmpty());

  // A job that never started keeps nothing, and files in data folders are not kept.
  UseJob("c");
  EXPECT_EQ(Launch(1).code(), absl::StatusCode::kInvalidArgument);
  std::ofstream(model_) << "weights";
  job_.mutable_spec()->mutable_initial_weights()->set_file("model.safetensors");
  EXPECT_TRUE(Launch(2).ok());
  EXPECT_EQ(PathGiven(2), model_);
  EXPECT_FALSE(std::filesystem::exists(KeptWeightsPath(job_.folder())));
}

// The upload may be gone, so only the kept file counts.
TEST_F(InitialWeightsTest, AnUploadedFileIsTheKeptFile) {
  job_.mutable_spec()->mutable_initial_weights()->set_file("uploads/0123456789abcdef/a.safetensors");
  const absl::Status missing = Launch(1);
  EXPECT_EQ(missing.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(missing.message()), HasSubstr(KeptWeightsPath(job_.folder())));
  ASSERT_TRUE(KeepUploadedWeights(model_, job_.folder(), ::link).ok());
  std::filesystem::remove(model_);
  for (const int attempt : {2, 3}) {
    const absl::Status launched = Launch(attempt);
    ASSERT_TRUE(launched.ok()) << launched;
    EXPECT_EQ(PathGiven(attempt), KeptWeightsPath(job_.folder()));
    EXPECT_EQ(Sha256Given(attempt), "");
  }
}

// A training job replaces its best model, so its record's digest may not be the kept file's.
TEST_F(InitialWeightsTest, TheDigestIsThatOfTheFileThatIsRead) {
  ASSERT_TRUE(Launch(1).ok());
  EXPECT_EQ(Sha256Given(1), "0123");
  ASSERT_TRUE(Launch(2).ok());
  EXPECT_EQ(Sha256Given(2), "0123") << "it has two names, and is the same";
  std::ofstream(model_ + ".new") << "better weights";
  std::filesystem::rename(model_ + ".new", model_);
  sha256_ = "4567";
  ASSERT_TRUE(Launch(3).ok());
  EXPECT_EQ(ContentOrEmpty(PathGiven(3)), "weights");
  EXPECT_EQ(Sha256Given(3), "");
}

TEST_F(InitialWeightsTest, WithoutSecondNamesTheModelIsReadWhereItIsAndTheJobTold) {
  options_.link = [](const char*, const char*) { return errno = EXDEV, -1; };
  const absl::Status launched = Launch(1);
  ASSERT_TRUE(launched.ok()) << launched;
  EXPECT_EQ(PathGiven(1), model_);
  EXPECT_THAT(told_, ElementsAre(AllOf(HasSubstr("jobs/b"), HasSubstr(model_))));
  // Any other error is returned.
  options_.link = [](const char*, const char*) { return errno = ENOSPC, -1; };
  const absl::Status failed = Launch(2);
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(std::string(failed.message()),
              AllOf(HasSubstr(model_), HasSubstr(KeptWeightsPath(job_.folder()))));
  EXPECT_EQ(told_.size(), 1);
}

// The worker reads the folder. A restored database may know other checkpoints, or none.
TEST_F(InitialWeightsTest, TheFolderSaysWhetherThereIsACheckpoint) {
  job_.mutable_last_checkpoint()->set_step(5);
  ASSERT_TRUE(Launch(1).ok());
  EXPECT_EQ(PathGiven(1), KeptWeightsPath(job_.folder())) << "the checkpoint is gone";
  job_.clear_last_checkpoint();
  std::ofstream(job_.folder() + "/checkpoint-5.safetensors") << "state";
  std::filesystem::remove(model_);
  std::filesystem::remove(KeptWeightsPath(job_.folder()));
  const absl::Status launched = Launch(2);
  ASSERT_TRUE(launched.ok()) << launched;
  EXPECT_EQ(PathGiven(2), "");
}

}  // namespace
}  // namespace tandem
