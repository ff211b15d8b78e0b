#include "server/workers/dataset_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "engine/base/clock.h"
#include "engine/base/field_violations.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

DatasetWorkers::Options FakeOptions() {
  DatasetWorkers::Options options;
  options.worker_program =
      std::string(getenv("TEST_SRCDIR")) + "/tandem/server/workers/testing/fake_model_worker";
  options.memory_bytes = 12345;
  return options;
}

internal::v1::DataTask Task(const std::string& name) {
  internal::v1::DataTask task;
  task.mutable_dataset()->set_name(name);
  return task;
}

TEST(DatasetWorkersTest, GivesFactsAndTheLimitOfMemory) {
  DatasetWorkers workers(FakeOptions());
  const absl::StatusOr<internal::v1::DataFacts> facts = workers.Read(Task("facts"));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->memory_bytes(), 12345);
}

TEST(DatasetWorkersTest, GivesFieldsAtFault) {
  DatasetWorkers workers(FakeOptions());
  const absl::Status wrong = workers.Read(Task("wrong")).status();
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(GetFieldViolations(wrong).size(), 1);
  EXPECT_EQ(GetFieldViolations(wrong)[0].field, "idx.classes");
}

TEST(DatasetWorkersTest, AProcessThatFailsIsAnError) {
  DatasetWorkers workers(FakeOptions());
  EXPECT_THAT(workers.Read(Task("die")).status().message(), HasSubstr("SIGABRT"));
  EXPECT_EQ(workers.Read(Task("nothing")).status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(workers.Read(Task("much")).status().message(), HasSubstr("more than 1048576"));
  EXPECT_THAT(workers.Read(Task("impossible")).status().message(),
              HasSubstr("counts or shapes are impossible"));
  EXPECT_TRUE(workers.Read(Task("facts")).ok());
}

TEST(DatasetWorkersTest, AProcessThatHasAnsweredKeepsNoPlace) {
  DatasetWorkers::Options options = FakeOptions();
  options.most_running = 1;
  DatasetWorkers workers(options);
  EXPECT_TRUE(workers.Read(Task("linger")).ok());
  EXPECT_TRUE(workers.Read(Task("facts")).ok());
}

TEST(DatasetWorkersTest, TakesNoLongerThanAllowed) {
  DatasetWorkers::Options options = FakeOptions();
  options.time_limit = absl::Milliseconds(300);
  DatasetWorkers workers(options);
  EXPECT_EQ(workers.Read(Task("hang")).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(DatasetWorkersTest, AStopEndsAllReadings) {
  DatasetWorkers::Options options = FakeOptions();
  options.most_running = 1;
  DatasetWorkers workers(options);
  absl::Status running, waiting;
  std::thread first([&] { running = workers.Read(Task("hang")).status(); });
  std::thread second([&] { waiting = workers.Read(Task("hang")).status(); });
  absl::SleepFor(absl::Milliseconds(200));
  const absl::Duration begin = Clock::Real()->Elapsed();
  workers.Stop();
  first.join();
  second.join();
  EXPECT_LT(Clock::Real()->Elapsed() - begin, absl::Seconds(60));
  EXPECT_EQ(running.code(), absl::StatusCode::kUnavailable) << running;
  EXPECT_EQ(waiting.code(), absl::StatusCode::kUnavailable) << waiting;
  EXPECT_EQ(workers.Read(Task("facts")).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tandem
