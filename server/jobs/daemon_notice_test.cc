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

}  // namespace
}  // namespace tandem
