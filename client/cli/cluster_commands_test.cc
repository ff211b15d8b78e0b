// Tests of commands for jobs on a cluster.
#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/app_fixture.h"
#include "client/cli/fake_terminal.h"
#include "client/lib/fake_daemon.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;

class ClusterCommandsTest : public AppFixture {
 protected:
  // Streams a job on a cluster in this state, and ends the job after the command's first look at the job.
  // GetJob says that the job waits with the message `waiting`. If this message is empty, the job does not
  // wait.
  void WatchFirstLook(const std::string& waiting, v1::JobState state = v1::JOB_STATE_STARTING) {
    daemon_.watch_job = [this, state](const v1::WatchJobRequest&, grpc::ServerContext* context,
                                      grpc::ServerWriter<v1::JobEvent>* writer) -> grpc::Status {
      v1::JobEvent event;
      event.set_job("jobs/lenet-1");
      event.set_sequence(1);
      event.mutable_state_change()->set_to(state);
      writer->Write(event);
      // The command's own first call is no look.
      while (calls_ < 2 && !context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
      event.set_sequence(2);
      event.set_terminal(true);
      event.mutable_state_change()->set_to(v1::JOB_STATE_CANCELLED);
      writer->Write(event);
      return grpc::Status::OK;
    };
    daemon_.get_job = [this, waiting, state](const v1::GetJobRequest&, v1::Job* job) {
      *job = Job("jobs/lenet-1", state);
      job->mutable_spec()->mutable_cluster()->mutable_slurm()->set_nodes(2);
      if (!waiting.empty()) {
        job->mutable_waiting()->set_reason(v1::Waiting::REASON_CLUSTER);
        job->mutable_waiting()->set_message(waiting);
      }
      ++calls_;
      return grpc::Status::OK;
    };
    EXPECT_EQ(Run({"watch", "lenet-1"}), 3) << terminal_.err();
  }

  // The calls of GetJob.
  std::atomic<int> calls_ = 0;
};

// The daemon has started the job, and Slurm queues it.
TEST_F(ClusterCommandsTest, AJobThatWaitsInAClusterSaysWhy) {
  WatchFirstLook("Slurm job 5 waits: Resources.");
  EXPECT_THAT(terminal_.out(), HasSubstr("waits: Slurm job 5 waits: Resources.\n"));
  FakeTerminal described;
  described.environment = terminal_.environment;
  EXPECT_EQ(RunCommand({"describe", "lenet-1"}, described), 0) << described.err();
  EXPECT_THAT(described.out(), HasSubstr("waits       Slurm job 5 waits: Resources.\n"));
}

TEST_F(ClusterCommandsTest, AJobWhoseWorkerHasNotReportedSaysSo) {
  WatchFirstLook("");
  EXPECT_THAT(terminal_.out(), HasSubstr("waits: The cluster runs it; its worker has not reported yet.\n"));
}

TEST_F(ClusterCommandsTest, AStopThatWaitsForTheClusterSaysSo) {
  WatchFirstLook("Slurm has not answered since 2026-11-28 18:00:00 UTC: it is away.",
                 v1::JOB_STATE_CANCELLING);
  EXPECT_THAT(terminal_.out(), HasSubstr("waits: Slurm has not answered since 2026-11-28 18:00:00 UTC"));
  FakeTerminal described;
  described.environment = terminal_.environment;
  EXPECT_EQ(RunCommand({"describe", "lenet-1"}, described), 0) << described.err();
  EXPECT_THAT(described.out(), HasSubstr("waits       Slurm has not answered since"));
}

TEST_F(ClusterCommandsTest, ADescribedJobHasItsNumberAndItsNodes) {
  v1::Job job = Job("jobs/lenet-1", v1::JOB_STATE_RUNNING);
  job.mutable_spec()->mutable_cluster()->mutable_slurm()->set_nodes(2);
  job.mutable_cluster_attempt()->set_id("4711");
  daemon_.get_job = [&job](const v1::GetJobRequest&, v1::Job* answer) {
    *answer = job;
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"describe", "lenet-1"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("cluster     Slurm job 4711\n"));
  job.mutable_cluster_attempt()->add_nodes("n1");
  job.mutable_cluster_attempt()->add_nodes("n2");
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  FakeTerminal ended;
  ended.environment = terminal_.environment;
  EXPECT_EQ(RunCommand({"describe", "lenet-1"}, ended), 0) << ended.err();
  EXPECT_THAT(ended.out(), HasSubstr("cluster     Slurm job 4711 on n1, n2\n"));
}

TEST_F(ClusterCommandsTest, AJobIsCheckedForTheCluster) {
  v1::CreateJobRequest asked;
  daemon_.create_job = [&](const v1::CreateJobRequest& request, v1::Job*) {
    asked = request;
    return grpc::Status::OK;
  };
  const std::string job = Write("job.yaml", "name: lenet\ncluster: {slurm: {nodes: 3}}\n");
  for (const char* command : {"validate", "submit"}) {
    EXPECT_EQ(Run({command, job, "--on", "slurm"}), 0) << terminal_.err();
    EXPECT_EQ(asked.spec().cluster().slurm().nodes(), 3);
    EXPECT_EQ(Run({command, Write("plain.yaml", "name: lenet\n"), "--on", "slurm"}), 0) << terminal_.err();
    EXPECT_TRUE(asked.spec().cluster().has_slurm());
    EXPECT_EQ(Run({command, Write("plain.yaml", "name: lenet\n"), "--on", "ssh"}), 0) << terminal_.err();
    EXPECT_TRUE(asked.spec().cluster().has_ssh());
    FakeTerminal wrong;
    wrong.environment = terminal_.environment;
    EXPECT_EQ(RunCommand({command, job, "--on", "pbs"}, wrong), 2);
    EXPECT_EQ(wrong.err(), "--on: is \"pbs\"; the kinds of clusters are slurm and ssh\n");
  }
}

TEST_F(ClusterCommandsTest, ASweepTrainsOnTheCluster) {
  v1::CreateSweepRequest asked;
  daemon_.create_sweep = [&](const v1::CreateSweepRequest& request, v1::Sweep* sweep) {
    asked = request;
    sweep->set_name("sweeps/lenet-1");
    return grpc::Status::OK;
  };
  const std::string plain = Write("plain.yaml", "name: lenet\n");
  const std::string sweep = Write("sweep.yaml",
                                  "base: {name: lenet, cluster: {ssh: {nodes: 2}}}\n"
                                  "grid: [{field: training.seed, values: [1, 2]}]\n");
  EXPECT_EQ(Run({"sweep", sweep, "--on", "ssh"}), 0) << terminal_.err();
  EXPECT_EQ(asked.sweep().base().cluster().ssh().nodes(), 2);
  EXPECT_EQ(Run({"sweep", sweep, "--on", "slurm"}), 0) << terminal_.err();
  EXPECT_TRUE(asked.sweep().base().cluster().has_slurm());
  EXPECT_EQ(Run({"sweep", plain, "--grid", "training.seed=1,2", "--on", "ssh"}), 0) << terminal_.err();
  EXPECT_TRUE(asked.sweep().base().cluster().has_ssh());
  FakeTerminal wrong;
  wrong.environment = terminal_.environment;
  EXPECT_EQ(RunCommand({"sweep", sweep, "--on", "pbs"}, wrong), 2);
  EXPECT_EQ(wrong.err(), "--on: is \"pbs\"; the kinds of clusters are slurm and ssh\n");
}

TEST_F(ClusterCommandsTest, AForkTrainsOnTheCluster) {
  daemon_.get_job = [](const v1::GetJobRequest&, v1::Job* job) {
    *job = Job("jobs/lenet-1", v1::JOB_STATE_SUCCEEDED);
    job->mutable_spec()->mutable_cluster()->mutable_ssh()->set_nodes(2);
    return grpc::Status::OK;
  };
  v1::ForkJobRequest asked;
  daemon_.fork_job = [&](const v1::ForkJobRequest& request, v1::Job* job) {
    asked = request;
    *job = Job("jobs/lenet-2", v1::JOB_STATE_QUEUED);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"fork", "lenet-1", "--on", "ssh"}), 0) << terminal_.err();
  EXPECT_EQ(asked.spec().cluster().ssh().nodes(), 2);
  EXPECT_EQ(Run({"fork", "lenet-1", "--on", "slurm"}), 0) << terminal_.err();
  EXPECT_TRUE(asked.spec().cluster().has_slurm());
  FakeTerminal wrong;
  wrong.environment = terminal_.environment;
  EXPECT_EQ(RunCommand({"fork", "lenet-1", "--on", "pbs"}, wrong), 2);
  EXPECT_EQ(wrong.err(), "--on: is \"pbs\"; the kinds of clusters are slurm and ssh\n");
}

TEST_F(ClusterCommandsTest, AnAnswerOfTheDaemonIsNoLostConnection) {
  daemon_.create_job = [](const v1::CreateJobRequest&, v1::Job*) {
    return client::UnavailableStatus("cannot check the job: Slurm does not answer");
  };
  EXPECT_EQ(Run({"submit", Write("job.yaml", "name: lenet\n"), "--on", "slurm"}), 4);
  EXPECT_EQ(terminal_.err(), absl::StrCat("tandem: the daemon at ", daemon_.address(),
                                          " answers: cannot check the job: Slurm does not answer\n"));
}

}  // namespace
}  // namespace tandem::cli
