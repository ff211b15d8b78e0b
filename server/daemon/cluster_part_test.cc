#include "server/daemon/cluster_part.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

v1::Job MakeJob(const std::string& id, v1::JobState state, bool is_on_cluster) {
  v1::Job job;
  job.set_name(absl::StrCat("jobs/", id));
  job.set_state(state);
  if (is_on_cluster) job.mutable_spec()->mutable_cluster()->mutable_slurm()->set_nodes(1);
  return job;
}

TEST(CheckNoneOnClusterTest, TakesJobsThatNeedNoCluster) {
  EXPECT_TRUE(CheckNoneOnCluster({}).ok());
  EXPECT_TRUE(CheckNoneOnCluster({MakeJob("here", v1::JOB_STATE_RUNNING, /*is_on_cluster=*/false),
                                  MakeJob("waits", v1::JOB_STATE_QUEUED, /*is_on_cluster=*/true),
                                  MakeJob("paused", v1::JOB_STATE_PAUSED, /*is_on_cluster=*/true)})
                  .ok());
}

TEST(CheckNoneOnClusterTest, NamesTheJobsOnTheClusterAndTheMissingOption) {
  for (const v1::JobState state : {v1::JOB_STATE_STARTING, v1::JOB_STATE_RUNNING, v1::JOB_STATE_CANCELLING,
                                   v1::JOB_STATE_PAUSING, v1::JOB_STATE_PREEMPTING}) {
    const absl::Status status =
        CheckNoneOnCluster({MakeJob("here", v1::JOB_STATE_RUNNING, /*is_on_cluster=*/false),
                            MakeJob("a", state, /*is_on_cluster=*/true),
                            MakeJob("b", v1::JOB_STATE_RUNNING, /*is_on_cluster=*/true)});
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << v1::JobState_Name(state);
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("jobs/a, jobs/b "), HasSubstr("--shared-folder"), Not(HasSubstr("jobs/here"))));
  }
}

TEST(CheckNoneOnClusterTest, NamesAtMostTenJobs) {
  std::vector<v1::Job> jobs;
  for (int i = 0; i < 12; ++i) jobs.push_back(MakeJob(absl::StrCat(i), v1::JOB_STATE_RUNNING, true));
  EXPECT_THAT(std::string(CheckNoneOnCluster(jobs).message()), HasSubstr("jobs/8, jobs/9 and 2 more "));
}

}  // namespace
}  // namespace tandem
