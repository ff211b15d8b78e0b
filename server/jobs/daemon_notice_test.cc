#include <gtest/gtest.h>

#include "server/jobs/job_machine_fixture.h"

namespace tandem {
namespace {

TEST(DaemonNoticeTest, StandsInTheLogOfAJobThatHasNotEnded) {
  JobMachineFixture jobs;
  const std::string id = jobs.NewJob();
  ASSERT_TRUE(jobs.AddNotice(id, "its GPU is not well").ok());
  EXPECT_EQ(jobs.Log(id).back().notice().message(), "its GPU is not well");
  ASSERT_TRUE(jobs.Cancel(id).ok());
  EXPECT_EQ(jobs.AddNotice(id, "late").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(jobs.AddNotice("none", "nobody").status().code(), absl::StatusCode::kNotFound);
}

TEST(ClusterAttemptTest, AnOlderAttemptIsNotRecorded) {
  JobMachineFixture jobs;
  const std::string id = jobs.RunningJob();
  v1::ClusterAttempt attempt;
  attempt.set_id("4711");
  Awaited<absl::StatusOr<v1::Job>> older, newest;
  jobs.machine().SetClusterAttempt(id, 0, attempt, "Submitted.", older.Done());
  EXPECT_EQ(older.Get().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(jobs.Get(id).has_cluster_attempt());
  jobs.machine().SetClusterAttempt(id, 1, attempt, "Submitted.", newest.Done());
  const auto recorded = newest.Get();
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(recorded->cluster_attempt().id(), "4711");
  EXPECT_EQ(jobs.Log(id).back().notice().message(), "Submitted.");
}

}  // namespace
}  // namespace tandem
