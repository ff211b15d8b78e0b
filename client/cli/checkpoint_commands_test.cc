#include <string>
#include <vector>

#include "client/cli/app_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;

class CheckpointCommandsTest : public AppFixture {
 protected:
  CheckpointCommandsTest() {
    daemon_.get_job = [this](const v1::GetJobRequest& request, v1::Job* job) -> grpc::Status {
      if (request.name() != "jobs/lenet-1") return {grpc::StatusCode::NOT_FOUND, "no " + request.name()};
      *job = job_;
      return grpc::Status::OK;
    };
    job_.set_name("jobs/lenet-1");
    job_.set_state(v1::JOB_STATE_SUCCEEDED);
    job_.mutable_spec()->set_name("lenet");
    job_.mutable_spec()->mutable_training()->set_epochs(3);
    job_.mutable_spec()->set_max_restarts(3);
  }

  v1::Job job_;
};

TEST_F(CheckpointCommandsTest, CheckpointsAreATable) {
  daemon_.list_checkpoints = [](const v1::ListCheckpointsRequest& request,
                                v1::ListCheckpointsResponse* response) {
    EXPECT_EQ(request.job(), "jobs/lenet-1");
    for (const int64_t step : {1200, 800, 400}) {
      v1::Checkpoint& checkpoint = *response->add_checkpoints();
      checkpoint.set_step(step);
      checkpoint.set_epoch(step / 400);
      checkpoint.set_size_bytes(2048);
      checkpoint.set_file("checkpoint-" + std::to_string(step) + ".safetensors");
      // The checkpoint of step 800 was written after a better result.
      checkpoint.set_best(step <= 800);
    }
    return grpc::Status::OK;
  };
  EXPECT_EQ(RunAnew({"checkpoints", "lenet-1"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(),
            " STEP  EPOCHS    SIZE  BEST  FILE                         MODEL\n"
            "1,200       3  2.0 kB  -     checkpoint-1200.safetensors  model-1200.safetensors\n"
            "  800       2  2.0 kB  yes   checkpoint-800.safetensors   model-800.safetensors\n"
            "  400       1  2.0 kB  -     checkpoint-400.safetensors   model-400.safetensors\n");
  EXPECT_EQ(RunAnew({"checkpoints", "lenet-1", "-o", "json"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("\"file\":\"checkpoint-1200.safetensors\""));
}

TEST_F(CheckpointCommandsTest, AForkIsOfTheJobAsItIsOrChanged) {
  v1::ForkJobRequest asked;
  daemon_.fork_job = [&asked](const v1::ForkJobRequest& request, v1::Job* job) {
    asked = request;
    job->set_name("jobs/lenet-2");
    job->mutable_forked_from()->set_job(request.name());
    job->mutable_forked_from()->set_step(request.has_step() ? request.step() : 1200);
    return grpc::Status::OK;
  };
  EXPECT_EQ(RunAnew({"fork", "lenet-1"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(),
            "submitted lenet-2\nit will continue from lenet-1's checkpoint of step 1,200\n"
            "follow it with: tandem watch lenet-2\n");
  EXPECT_FALSE(asked.has_spec());
  EXPECT_FALSE(asked.has_step());
  EXPECT_NE(asked.request_id(), "");
  EXPECT_EQ(
      RunAnew({"fork", "lenet-1", "--from-checkpoint", "400", "--set", "training.epochs=20", "--check"}), 0)
      << terminal_.err();
  EXPECT_EQ(terminal_.out(),
            "it would continue from lenet-1's checkpoint of step 400; no job was submitted\n");
  EXPECT_EQ(asked.step(), 400);
  EXPECT_EQ(asked.spec().name(), "lenet");
  EXPECT_EQ(asked.spec().training().epochs(), 20);
  EXPECT_TRUE(asked.validate_only());
  EXPECT_EQ(RunAnew({"fork", "lenet-1", "--set", "training.epoch=20"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("did you mean `epochs`?"));
  EXPECT_EQ(RunAnew({"fork", "lenet-1", "--from-checkpoint", "last"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("--from-checkpoint: 'last' is not a whole number from 0 on"));
}

TEST_F(CheckpointCommandsTest, AJobThatWaitsToBeStartedAgainSaysWhen) {
  job_.set_state(v1::JOB_STATE_QUEUED);
  job_.set_reason(v1::STATE_REASON_RESTARTING);
  job_.set_message("The worker was killed by signal 9. It starts again in 4 s.");
  job_.set_restarts(2);
  job_.mutable_restart_time()->set_seconds(absl::ToUnixSeconds(terminal_.Now()) + 3);
  EXPECT_EQ(RunAnew({"describe", "lenet-1"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(),
              HasSubstr("queued: The worker was killed by signal 9. It starts again in 4 s.\n"));
  EXPECT_THAT(
      terminal_.out(),
      HasSubstr("2 of 3 since a checkpoint last had a new epoch, or since the start; it starts again in "));
  // The wait is over, and the job waits for devices.
  job_.mutable_restart_time()->set_seconds(absl::ToUnixSeconds(terminal_.Now()) - 1);
  EXPECT_EQ(RunAnew({"describe", "lenet-1"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(),
              HasSubstr("2 of 3 since a checkpoint last had a new epoch, or since the start\n"));
}

}  // namespace
}  // namespace tandem::cli
