#include "server/scheduler/run_time_estimate.h"

#include "gtest/gtest.h"

namespace tandem {
namespace {

v1::Job MakeJob(double operations, int replicas = 1) {
  v1::Job job;
  job.set_planned_operations(operations);
  job.mutable_spec()->mutable_replicas()->set_count(replicas);
  job.mutable_spec()->mutable_replicas()->set_device_kind(v1::DEVICE_KIND_CPU);
  return job;
}

TEST(RunTimeEstimateTest, TheTimeLimitIsTheMost) {
  const RunTimeEstimate estimate;
  v1::Job job = MakeJob(1e15);
  EXPECT_EQ(LongestRemaining(job, absl::ZeroDuration()), absl::InfiniteDuration());
  job.mutable_spec()->set_time_limit_seconds(100);
  job.set_run_seconds(30);
  for (const auto& [held, left] : {std::pair(0, 70), std::pair(50, 20), std::pair(90, 0)}) {
    EXPECT_EQ(LongestRemaining(job, absl::Seconds(held)), absl::Seconds(left));
    EXPECT_EQ(estimate.Remaining(job, absl::Seconds(held)), absl::Seconds(left));
  }
  // Most jobs end before.
  job.mutable_progress()->set_step(100);
  job.mutable_progress()->set_steps(110);
  EXPECT_EQ(estimate.Remaining(job, absl::Seconds(20)), absl::Seconds(5));
  EXPECT_EQ(LongestRemaining(job, absl::Seconds(20)), absl::Seconds(50));
  // Nothing else is known about the job.
  job = MakeJob(0);
  job.mutable_spec()->set_time_limit_seconds(100);
  EXPECT_EQ(estimate.Remaining(job, absl::Seconds(10)), absl::Seconds(90));
}

TEST(RunTimeEstimateTest, TheMeasuredSpeedCountsFirst) {
  const RunTimeEstimate estimate;
  v1::Job job = MakeJob(1e15);
  job.mutable_progress()->set_step(100);
  job.mutable_progress()->set_steps(400);
  EXPECT_EQ(estimate.Remaining(job, absl::Seconds(10)), absl::Seconds(30));
  // In a later attempt, the earlier attempts' time also counts.
  job.set_run_seconds(40);
  EXPECT_EQ(estimate.Remaining(job, absl::Seconds(10)), absl::Seconds(150));
}

TEST(RunTimeEstimateTest, ThenItsOperationsAsFastAsOthersWere) {
  RunTimeEstimate estimate;
  EXPECT_EQ(estimate.Remaining(MakeJob(0), absl::ZeroDuration()), absl::InfiniteDuration());
  EXPECT_LT(estimate.Remaining(MakeJob(1e12), absl::ZeroDuration()), absl::Hours(1));
  v1::Job other = MakeJob(1e12);
  other.mutable_progress()->set_step(50);
  other.mutable_progress()->set_steps(100);
  estimate.Learn(other, absl::Seconds(5));  // 1e11 operations per second
  EXPECT_EQ(estimate.Remaining(MakeJob(1e12), absl::ZeroDuration()), absl::Seconds(10));
  EXPECT_EQ(estimate.Remaining(MakeJob(1e12, /*replicas=*/2), absl::ZeroDuration()), absl::Seconds(5));
  EXPECT_EQ(estimate.Remaining(MakeJob(1e12), absl::Seconds(20)), absl::ZeroDuration());
}

// The steps before its checkpoint were another job's.
TEST(RunTimeEstimateTest, AForkTookOnlyItsOwnSteps) {
  RunTimeEstimate estimate;
  v1::Job fork = MakeJob(1e12);
  fork.mutable_forked_from()->set_step(900);
  fork.mutable_progress()->set_step(900);
  fork.mutable_progress()->set_steps(1000);
  EXPECT_EQ(estimate.Remaining(fork, absl::Seconds(1)), estimate.Remaining(MakeJob(1e12), absl::Seconds(1)));
  estimate.Learn(fork, absl::Seconds(1));  // nothing yet
  fork.mutable_progress()->set_step(910);
  EXPECT_EQ(estimate.Remaining(fork, absl::Seconds(10)), absl::Seconds(90));
  estimate.Learn(fork, absl::Seconds(10));  // 1e9 operations per second
  EXPECT_EQ(estimate.Remaining(MakeJob(1e12), absl::ZeroDuration()), absl::Seconds(1000));
}

}  // namespace
}  // namespace tandem
