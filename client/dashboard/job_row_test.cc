#include "client/dashboard/job_row.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace tandem::dashboard {
namespace {

using nlohmann::json;

v1::Job Job(const std::string& text) {
  v1::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &job)) << text;
  return job;
}

TEST(JobRowTest, HasWhatIsKnown) {
  const json row = JobRow(Job(R"(name: "jobs/lenet-k3v7qa" user: "ann" state: JOB_STATE_RUNNING priority: -3
                                 spec { name: "lenet" training { global_batch_size: 100 } }
                                 create_time { seconds: 1000 } start_time { seconds: 1010 nanos: 500000000 }
                                 devices: "devices/cpu:0" devices: "devices/cpu:1"
                                 progress { epoch: 2 epochs: 4 step: 150 steps: 400 images_per_second: 500
                                            training { loss: 0.5 metrics { key: "accuracy" value: 0.75 } } })"),
                          {0.75, std::numeric_limits<double>::quiet_NaN()}, 1100);
  EXPECT_EQ(row["name"], "jobs/lenet-k3v7qa");
  EXPECT_EQ(row["display_name"], "lenet");
  EXPECT_EQ(row["user"], "ann");
  EXPECT_EQ(row["state"], "RUNNING");
  EXPECT_EQ(row["priority"], -3);
  EXPECT_EQ(row["create_time"], 1000);
  EXPECT_EQ(row["start_time"], 1010.5);
  EXPECT_FALSE(row.contains("end_time"));
  EXPECT_EQ(row["devices"], json({"cpu:0", "cpu:1"}));
  EXPECT_EQ(row["step"], 150);
  EXPECT_EQ(row["steps"], 400);
  EXPECT_EQ(row["loss"], 0.5);
  EXPECT_EQ(row["metric"], "accuracy");
  EXPECT_EQ(row["value"], 0.75);
  // 250 steps of 100 samples at 500 samples a second.
  EXPECT_EQ(row["seconds_left"], 50);
  EXPECT_EQ(row["spark"], json({0.75, nullptr}));
}

TEST(JobRowTest, TheValidationOfAnEpochCounts) {
  const json row = JobRow(Job(R"(state: JOB_STATE_SUCCEEDED end_time { seconds: 9 }
                                 progress { epoch: 2 epochs: 2 step: 20 steps: 20 training { loss: 9 } }
                                 last_epoch { epoch: 2 epochs: 2 step: 20 training { loss: 2 }
                                              validation { loss: 3 metrics { key: "top_5" value: 1 } } })"),
                          {}, 10);
  EXPECT_EQ(row["loss"], 3);
  EXPECT_EQ(row["metric"], "top_5");
  EXPECT_EQ(row["epoch"], 2);
  EXPECT_EQ(row["step"], 20);
  EXPECT_FALSE(row.contains("seconds_left"));
}

TEST(JobRowTest, AnAttemptThatBeganAtAnEarlierStepShowsItsOwnStep) {
  const json row = JobRow(Job(R"(state: JOB_STATE_RUNNING
                                 progress { epoch: 2 epochs: 4 step: 15 steps: 40 images_per_second: 7 }
                                 last_epoch { epoch: 3 epochs: 4 step: 30 images_per_second: 9 })"),
                          {}, 10);
  EXPECT_EQ(row["epoch"], 2);
  EXPECT_EQ(row["step"], 15);
  EXPECT_EQ(row["rate"], 7);
}

TEST(JobRowTest, AnEndedJobShowsItsLastValidation) {
  const json row =
      JobRow(Job(R"(state: JOB_STATE_CANCELLED last_epoch { epoch: 1 step: 20 training { loss: 2 } }
                                 summary { validation { loss: 3 metrics { key: "accuracy" value: 0.5 } } })"),
             {}, 10);
  EXPECT_EQ(row["loss"], 3);
  EXPECT_EQ(row["value"], 0.5);
}

TEST(JobRowTest, ValuesOfTrainingAreMarked) {
  const json running = JobRow(Job("progress { step: 1 training { loss: 2 } }"), {}, 10);
  EXPECT_EQ(running["of_training"], true);
  const json trained = JobRow(Job("last_epoch { epoch: 1 training { loss: 2 } }"), {}, 10);
  EXPECT_EQ(trained["of_training"], true);
  const json validated =
      JobRow(Job("last_epoch { epoch: 1 training { loss: 2 } validation { loss: 3 } }"), {}, 10);
  EXPECT_EQ(validated["loss"], 3);
  EXPECT_FALSE(validated.contains("of_training"));
  EXPECT_FALSE(JobRow(Job("summary { validation { loss: 3 } }"), {}, 10).contains("of_training"));
}

TEST(JobRowTest, AResumedJobCountsAllAttempts) {
  const json row =
      JobRow(Job(R"(state: JOB_STATE_SUCCEEDED start_time { seconds: 100 } end_time { seconds: 103 }
                                 run_seconds: 15.5 attempt: 2)"),
             {}, 110);
  EXPECT_EQ(row["run_seconds"], 15.5);
}

TEST(JobRowTest, AMetricHasItsBetterDirection) {
  const auto row_of = [](const std::string& metrics) {
    return JobRow(Job("progress { step: 1 training { " + metrics + " } }"), {}, 10);
  };
  const json errors = row_of(R"(metrics { key: "rmse" value: 2 } metrics { key: "mae" value: 1 })");
  EXPECT_EQ(errors["metric"], "mae");
  EXPECT_EQ(errors["smaller_is_better"], true);
  const json answers = row_of(R"(metrics { key: "accuracy" value: 1 } metrics { key: "auc" value: 2 })");
  EXPECT_EQ(answers["metric"], "accuracy");
  EXPECT_FALSE(answers.contains("smaller_is_better"));
}

TEST(JobRowTest, WhatIsNotKnownIsLeftOut) {
  const json row = JobRow(Job(R"(name: "jobs/x" state: JOB_STATE_QUEUED)"), {}, 10);
  for (const char* const key :
       {"loss", "value", "step", "steps", "rate", "spark", "start_time", "run_seconds", "reason", "devices"})
    EXPECT_FALSE(row.contains(key)) << key;
}

TEST(JobRowTest, ALossThatIsNoNumberIsNull) {
  v1::Job job = Job("state: JOB_STATE_FAILED progress { step: 1 }");
  job.mutable_progress()->mutable_training()->set_loss(std::nan(""));
  EXPECT_TRUE(JobRow(job, {}, 10)["loss"].is_null());
}

}  // namespace
}  // namespace tandem::dashboard
