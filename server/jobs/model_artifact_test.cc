#include "server/jobs/model_artifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
  const absl::Status other = missing(JobWith(v1::JOB_STATE_SUCCEEDED, {"model.safetensors"}));
  EXPECT_TRUE(absl::IsNotFound(other)) << other;
  EXPECT_EQ(GetReason(other), "ARTIFACT_NOT_FOUND");
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("'best.safetensors' of jobs/lenet-1: it has model.safetensors"));
  v1::Job failed = JobWith(v1::JOB_STATE_FAILED, {});
  EXPECT_THAT(std::string(missing(failed).message()), HasSubstr("it ended without a model"));
  EXPECT_THAT(std::string(missing(failed).message()), ::testing::Not(HasSubstr("checkpoint")));
  failed.mutable_last_checkpoint()->set_step(40);
  EXPECT_THAT(std::string(missing(failed).message()), HasSubstr("its checkpoint of step 40 can be forked"));
}

}  // namespace
}  // namespace tandem
