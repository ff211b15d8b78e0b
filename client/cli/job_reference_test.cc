// How commands find the jobs that people name.
#include <string>
#include <vector>

#include "client/cli/app_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;

using JobReferenceTest = AppFixture;

TEST_F(JobReferenceTest, JobsAreFoundByTheBeginningOfTheirIds) {
  daemon_.cancel_job = [](const v1::CancelJobRequest& request, v1::Job* job) {
    *job = Job(request.name(), v1::JOB_STATE_CANCELLING);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"cancel", "jobs/lenet-1", "len", "mlp-1a"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), "lenet-1 cancelling\nlenet-1 cancelling\nmlp-1a cancelling\n");
  EXPECT_EQ(Run({"cancel", "mlp"}), 2);
  EXPECT_EQ(
      terminal_.err(),
      "tandem: 2 jobs begin with `mlp`: mlp-1a, mlp-1b; write more of the id, or `mlp@` for the newest\n");
  EXPECT_EQ(Run({"cancel", "mpl-1a"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("no job's id begins with `mpl-1a`; did you mean `mlp-1a`?"));
}

TEST_F(JobReferenceTest, TheNewestOfSeveralJobsIsFound) {
  daemon_.cancel_job = [](const v1::CancelJobRequest& request, v1::Job* job) {
    *job = Job(request.name(), v1::JOB_STATE_CANCELLING);
    return grpc::Status::OK;
  };
  // The daemon lists the newest job first: lenet-1, mlp-1a, mlp-1b.
  EXPECT_EQ(Run({"cancel", "mlp@", "jobs/mlp-@", "len@"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), "mlp-1a cancelling\nmlp-1a cancelling\nlenet-1 cancelling\n");
  EXPECT_EQ(RunAnew({"describe", "@"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("lenet-1"));
  EXPECT_EQ(RunAnew({"cancel", "mpl@"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("no job's id begins with `mpl`"));
  EXPECT_EQ(RunAnew({"cancel", "m@p"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("it is not a job's name"));
  daemon_.list_jobs = [](const v1::ListJobsRequest&, v1::ListJobsResponse*) { return grpc::Status::OK; };
  EXPECT_EQ(RunAnew({"describe", "@"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("there are no jobs"));
}

TEST_F(JobReferenceTest, TheNewestOfAllJobsIsNotChanged) {
  daemon_.cancel_job = [](const v1::CancelJobRequest&, v1::Job*) {
    ADD_FAILURE() << "a job was cancelled";
    return grpc::Status::OK;
  };
  const std::vector<std::vector<std::string>> commands = {
      {"cancel", "@"}, {"pause", "jobs/@"}, {"delete", "@"}, {"priority", "@", "3"}};
  for (const std::vector<std::string>& command : commands) {
    EXPECT_EQ(RunAnew(command), 2) << command[0];
    EXPECT_THAT(terminal_.err(), HasSubstr("write the beginning of its id before the @")) << command[0];
  }
}

}  // namespace
}  // namespace tandem::cli
