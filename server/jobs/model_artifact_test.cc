#include "server/jobs/model_artifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

v1::Job JobWith(v1::JobState state, const std::vector<std::string>& artifacts) {
  v1::Job job;
  job.set_name("jobs/lenet-1");
  job.set_folder("/state/jobs/lenet-1");
  job.set_state(state);
  for (const std::string& name : artifacts) {
    v1::Artifact& artifact = *job.add_artifacts();
    artifact.set_name(name);
    artifact.set_sha256("abc");
  }
  return job;
}

TEST(ModelArtifactTest, AnEndedJobsModelHasItsDigest) {
  const v1::Job job = JobWith(v1::JOB_STATE_SUCCEEDED, {"model.safetensors", "best.safetensors"});
  absl::StatusOr<ModelFile> model = FindModelArtifact(job, "");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->path, "/state/jobs/lenet-1/model.safetensors");
  EXPECT_EQ(model->sha256, "abc");
  EXPECT_EQ(FindModelArtifact(job, "best.safetensors")->path, "/state/jobs/lenet-1/best.safetensors");
  // A better model may replace a running job's file.
  model = FindModelArtifact(JobWith(v1::JOB_STATE_RUNNING, {"model.safetensors"}), "");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->sha256, "");
}

TEST(ModelArtifactTest, NoNameLeadsOutOfTheFolder) {
  for (const std::string name : {"", "/etc/a.safetensors", "../a.safetensors", "a/../../b.safetensors"}) {
    EXPECT_FALSE(StaysInFolder(name)) << name;
    if (name.empty()) continue;
    const absl::Status status = FindModelArtifact(JobWith(v1::JOB_STATE_SUCCEEDED, {name}), name).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
  }
  EXPECT_TRUE(StaysInFolder("a..b.safetensors"));
  EXPECT_TRUE(StaysInFolder("models/a.safetensors"));
}

TEST(ModelArtifactTest, AMissingModelSaysWhatThereIs) {
  const auto missing = [](const v1::Job& job) { return FindModelArtifact(job, "best.safetensors").status(); };
  const absl::Status waiting = missing(JobWith(v1::JOB_STATE_RUNNING, {"log.txt"}));
  EXPECT_TRUE(absl::IsFailedPrecondition(waiting)) << waiting;
  EXPECT_EQ(GetReason(waiting), "NO_MODEL_YET");
  EXPECT_THAT(std::string(waiting.message()), ::testing::Not(HasSubstr("checkpoint")));
  // The best model comes before the last.
  const absl::Status last =
      FindModelArtifact(JobWith(v1::JOB_STATE_RUNNING, {"best.safetensors"}), "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(last)) << last;
  EXPECT_EQ(GetReason(last), "NO_MODEL_YET");
  EXPECT_THAT(
      std::string(last.message()),
      HasSubstr("jobs/lenet-1: it has no 'model.safetensors' yet, only best.safetensors; wait until"));
  v1::Job running = JobWith(v1::JOB_STATE_RUNNING, {});
  running.mutable_last_checkpoint()->set_step(40);
  EXPECT_THAT(std::string(missing(running).message()),
              HasSubstr("or use the model of its newest checkpoint, model-40.safetensors"));
  const absl::Status other = missing(JobWith(v1::JOB_STATE_SUCCEEDED, {"model.safetensors"}));
  EXPECT_TRUE(absl::IsNotFound(other)) << other;
  EXPECT_EQ(GetReason(other), "ARTIFACT_NOT_FOUND");
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("'best.safetensors' of jobs/lenet-1: it has model.safetensors"));
  v1::Job failed = JobWith(v1::JOB_STATE_FAILED, {});
  EXPECT_THAT(std::string(missing(failed).message()), HasSubstr("it ended without a model"));
  EXPECT_THAT(std::string(missing(failed).message()), ::testing::Not(HasSubstr("checkpoint")));
  failed.mutable_last_checkpoint()->set_step(40);
  EXPECT_THAT(
      std::string(missing(failed).message()),
      HasSubstr("its checkpoint of step 40 can be forked (tandem fork), or used as model-40.safetensors"));
}

TEST(ModelArtifactTest, ACheckpointsModelHasAName) {
  EXPECT_EQ(CheckpointModelName(120), "model-120.safetensors");
  EXPECT_EQ(StepOfCheckpointModel("model-120.safetensors"), 120);
  for (const char* other : {"model.safetensors", "model-.safetensors", "model-01.safetensors", "model-1.pt",
                            "model--1.safetensors", "best.safetensors", "checkpoint-120.safetensors", ""}) {
    EXPECT_EQ(StepOfCheckpointModel(other), std::nullopt) << other;
  }
}

TEST(ModelArtifactTest, ACheckpointIsFoundWhileItIsThere) {
  const std::string folder = ::testing::TempDir() + "model_artifact_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  v1::Job job = JobWith(v1::JOB_STATE_RUNNING, {"model.safetensors"});
  job.set_folder(folder);
  const auto error = [&job] { return FindModel(job, "model-7.safetensors").status(); };
  EXPECT_TRUE(absl::IsNotFound(error())) << error();
  EXPECT_EQ(GetReason(error()), "CHECKPOINT_NOT_FOUND");
  EXPECT_THAT(std::string(error().message()), HasSubstr("of jobs/lenet-1: it has no checkpoint yet"));
  for (const int step : {7, 9, 20}) {
    std::ofstream(absl::StrCat(folder, "/checkpoint-", step, ".safetensors")) << "x";
  }
  const absl::StatusOr<ModelFile> found = FindModel(job, "model-7.safetensors");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->path, folder + "/checkpoint-7.safetensors");
  EXPECT_EQ(found->sha256, "");
  EXPECT_EQ(FindModel(job, "")->path, folder + "/model.safetensors");
  const absl::Status file = FindModel(job, "checkpoint-9.safetensors").status();
  EXPECT_TRUE(absl::IsNotFound(file)) << file;
  EXPECT_EQ(GetReason(file), "ARTIFACT_NOT_FOUND");
  EXPECT_EQ(
      file.message(),
      "cannot use the model 'checkpoint-9.safetensors' of jobs/lenet-1: it is a checkpoint; use its model, "
      "model-9.safetensors");
  EXPECT_EQ(FindModel(job, "checkpoint-8.safetensors").status().message(),
            FindModelArtifact(job, "checkpoint-8.safetensors").status().message());
  std::filesystem::remove(folder + "/checkpoint-7.safetensors");
  EXPECT_THAT(std::string(error().message()),
              HasSubstr("it has no checkpoint of step 7; give one of the steps 20, 9"));
  // A worker without a sandbox may make a link to another job's file.
  std::filesystem::create_symlink(folder + "/checkpoint-9.safetensors", folder + "/checkpoint-7.safetensors");
  EXPECT_TRUE(absl::IsNotFound(error())) << error();
}

}  // namespace
}  // namespace tandem
