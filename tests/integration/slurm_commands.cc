// Tests of server/clusters/slurm with a real cluster. slurm_commands.sh starts the cluster and this program
// on its login node. The cluster has the nodes n1 and n2 with one CPU and two GPUs each, and the partitions
// "work", "urgent" and "brief" of tests/integration/slurm/cluster.sh.
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/command.h"
#include "engine/base/field_violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/clusters/slurm/batch_script.h"
#include "server/clusters/slurm/slurm_command_client.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr absl::Duration kPatience = absl::Seconds(40);
constexpr char kLastingComment[] = "tandem:lasting:1";

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<std::string> FieldsOf(const absl::Status& status) {
  std::vector<std::string> fields;
  for (const FieldViolation& violation : GetFieldViolations(status)) fields.push_back(violation.field);
  return fields;
}

class SlurmTest : public ::testing::Test {
 protected:
  SlurmTest() : slurm_(SlurmCommandClient::Options()) {
    const char* const shared = getenv("TANDEM_SHARED_FOLDER");
    EXPECT_NE(shared, nullptr) << "run tests/integration/slurm_commands.sh";
    // A path with characters that shells and Slurm could take for their own.
    folder_ = absl::StrCat(shared == nullptr ? "/tmp" : shared, "/",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name(), " 50%j 'q' $x");
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/attempt-1");
    script_.attempt_folder = folder_ + "/attempt-1";
    script_.command = {"true"};
    request_.name = "odd | \"name\" of 'a' $job";
    request_.comment =
        absl::StrCat("tandem:", ::testing::UnitTest::GetInstance()->current_test_info()->name(), ":1");
    request_.partition = "work";
    request_.script_path = folder_ + "/batch.sh";
    request_.output_path = folder_ + "/output";
    request_.work_folder = folder_;
  }

  absl::StatusOr<std::string> Submit() {
    script_.nodes = request_.nodes;
    script_.tasks_per_node = request_.tasks_per_node;
    script_.cpus_per_task = request_.cpus_per_task;
    std::ofstream(request_.script_path) << BatchScript(script_);
    return slurm_.Submit(request_);
  }

  // Polls until the condition holds for the job. Returns the last state of the job.
  SlurmJob Await(const std::string& id, const std::function<bool(const SlurmJob&)>& condition) {
    SlurmJob job;
    const auto start = std::chrono::steady_clock::now();
    while (absl::FromChrono(std::chrono::steady_clock::now() - start) < kPatience) {
      const auto jobs = slurm_.Poll();
      EXPECT_TRUE(jobs.ok()) << jobs.status();
      for (const SlurmJob& known : jobs.value_or(std::vector<SlurmJob>())) {
        if (known.id == id) job = known;
      }
      if (condition(job)) return job;
      absl::SleepFor(absl::Milliseconds(100));
    }
    ADD_FAILURE() << "job " << id << " stays " << job.state_text << " " << job.reason << "\n"
                  << ReadText(request_.output_path);
    return job;
  }
  SlurmJob AwaitState(const std::string& id, SlurmState state) {
    return Await(id, [state](const SlurmJob& job) { return job.state == state; });
  }
  SlurmJob AwaitEnd(const std::string& id) {
    return Await(id, [](const SlurmJob& job) { return IsEnd(job.state); });
  }
  void AwaitText(const std::string& path, const std::string& text, int tenths_of_seconds = 600) {
    for (int i = 0; i < tenths_of_seconds && ReadText(path).find(text) == std::string::npos; ++i) {
      absl::SleepFor(absl::Milliseconds(100));
    }
    EXPECT_THAT(ReadText(path), HasSubstr(text));
  }

  // Returns the path of the output of a rank.
  std::string RankFile(int rank) const { return absl::StrCat(script_.task_output, rank, ".log"); }

  SlurmCommandClient slurm_;
  std::string folder_;
  BatchScriptOptions script_;
  SlurmRequest request_;
};

using SlurmCommandsTest = SlurmTest;

TEST_F(SlurmCommandsTest, RunsAJobOnTwoNodes) {
  request_.nodes = 2;
  request_.time_limit = absl::Minutes(5);
  script_.command = {"sh", "-c", "echo \"$SLURM_PROCID of $SLURM_NTASKS on $(hostname) in $(pwd), $A, $TZ\""};
  script_.environment = {{"A", "it's"}};
  script_.required_paths = {folder_};
  script_.task_output = folder_ + "/rank-";
  ASSERT_TRUE(slurm_.Test(request_).ok()) << slurm_.Test(request_);
  const auto id = Submit();
  ASSERT_TRUE(id.ok()) << id.status();
  const SlurmJob job = AwaitEnd(*id);
  EXPECT_EQ(job.state, SlurmState::kCompleted);
  EXPECT_THAT(job.nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ(job.comment, request_.comment);
  EXPECT_EQ(job.reason, "");
  EXPECT_EQ(ReadText(script_.attempt_folder + "/started"), absl::StrCat(*id, " n1\n"));
  EXPECT_EQ(ReadText(script_.attempt_folder + "/ended"), "0\n");
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ReadText(RankFile(rank)),
              absl::StrCat(rank, " of 2 on n", rank + 1, " in ", folder_, ", it's, UTC\n"));
  }
}

TEST_F(SlurmCommandsTest, AFailedTaskEndsTheJob) {
  request_.nodes = 2;
  // The other task has started: otherwise srun may order it to end before it exists, and wait for good.
  script_.command = {"sh", "-c",
                     "if [ $SLURM_PROCID = 0 ]; then touch task-0; sleep 300; fi; "
                     "until [ -e task-0 ]; do sleep 0.1; done; exit 7"};
  const auto id = Submit();
  ASSERT_TRUE(id.ok()) << id.status();
  const SlurmJob job = AwaitEnd(*id);
  EXPECT_EQ(job.state, SlurmState::kFailed);
  EXPECT_EQ(job.reason, "NonZeroExitCode");
  EXPECT_THAT(ReadText(script_.attempt_folder + "/ended"), Not(HasSubstr("0\n")));
  EXPECT_THAT(ReadText(request_.output_path), HasSubstr("task 1: Exited with exit code 7"));
}

TEST_F(SlurmCommandsTest, AnAttemptRunsOnce) {
  const auto first = Submit();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(AwaitEnd(*first).state, SlurmState::kCompleted);
  const auto second = slurm_.Submit(request_);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(AwaitEnd(*second).state, SlurmState::kFailed);
  EXPECT_THAT(ReadText(request_.output_path), HasSubstr("the attempt was started before"));
  EXPECT_EQ(ReadText(script_.attempt_folder + "/started"), absl::StrCat(*first, " n1\n"));
  const auto found = slurm_.Find(request_.comment);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->id, *first);
}

TEST_F(SlurmCommandsTest, AMissingPathNamesNodeAndPath) {
  script_.required_paths = {"/no/such path"};
  const auto id = Submit();
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(AwaitEnd(*id).state, SlurmState::kFailed);
  EXPECT_THAT(ReadText(request_.output_path), HasSubstr("cannot start on node n1: /no/such path is missing"));
}

TEST_F(SlurmCommandsTest, ASignalLetsTheTasksSave) {
  request_.nodes = 2;
  script_.command = {"bash", "-c",
                     "trap 'sleep 1; echo saved $SLURM_PROCID; exit 0' TERM; echo ready $SLURM_PROCID; "
                     "while true; do sleep 0.1; done"};
  const auto id = Submit();
  ASSERT_TRUE(id.ok()) << id.status();
  AwaitText(request_.output_path, "ready 0");
  AwaitText(request_.output_path, "ready 1");
  EXPECT_TRUE(slurm_.Cancel(*id, true).ok());
  EXPECT_EQ(AwaitEnd(*id).state, SlurmState::kCompleted);
  EXPECT_THAT(ReadText(request_.output_path), HasSubstr("saved 0"));
  EXPECT_THAT(ReadText(request_.output_path), HasSubstr("saved 1"));
  EXPECT_EQ(ReadText(script_.attempt_folder + "/ended"), "0 SIGTERM\n");
}

// Slurm sends the signal 60 to 90 seconds before the time limit.
TEST_F(SlurmCommandsTest, TheTimeLimitHasItsOwnSignal) {
  request_.time_limit = absl::Minutes(2);
  script_.command = {"bash", "-c",
                     "trap 'echo warned; exit 0' USR1; trap 'echo terminated; exit 1' TERM; "
                     "while true; do sleep 0.1; done"};
  const auto id = Submit();
  ASSERT_TRUE(id.ok()) << id.status();
  AwaitText(request_.output_path, "warned", 1200);
  EXPECT_EQ(AwaitEnd(*id).state, SlurmState::kCompleted);
  EXPECT_EQ(ReadText(script_.attempt_folder + "/ended"), "0\n");
}

TEST_F(SlurmCommandsTest, CancelsRunningWaitingAndEndedJobs) {
  request_.nodes = 2;
  script_.command = {"sleep", "300"};
  const auto running = Submit();
  ASSERT_TRUE(running.ok()) << running.status();
  AwaitState(*running, SlurmState::kRunning);
  const auto waiting = Submit();
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  const SlurmJob job = Await(*waiting, [](const SlurmJob& known) { return known.reason == "Resources"; });
  EXPECT_EQ(job.state, SlurmState::kPending);
  EXPECT_THAT(job.nodes, IsEmpty());
  EXPECT_TRUE(slurm_.Cancel(*waiting, true).ok());
  EXPECT_EQ(AwaitState(*waiting, SlurmState::kPending).id, *waiting);
  EXPECT_TRUE(slurm_.Cancel(*waiting, false).ok());
  EXPECT_EQ(AwaitEnd(*waiting).state, SlurmState::kCancelled);
  EXPECT_TRUE(slurm_.Cancel(*running, false).ok());
  EXPECT_EQ(AwaitEnd(*running).state, SlurmState::kCancelled);
  EXPECT_TRUE(slurm_.Cancel(*running, false).ok()) << "the job has ended";
  EXPECT_TRUE(slurm_.Cancel(*running, true).ok()) << "the job has ended";
  EXPECT_TRUE(slurm_.Cancel("999999", false).ok()) << "no such job";
}

TEST_F(SlurmCommandsTest, AWaitingJobHasAnExpectedStart) {
  request_.nodes = 2;
  request_.time_limit = absl::Minutes(10);
  script_.command = {"sleep", "300"};
  const auto running = Submit();
  ASSERT_TRUE(running.ok()) << running.status();
  AwaitState(*running, SlurmState::kRunning);
  const auto waiting = Submit();
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  const SlurmJob job = Await(*waiting, [](const SlurmJob& known) { return known.start.has_value(); });
  ASSERT_TRUE(job.start.has_value());
  EXPECT_GT(*job.start, absl::Now() + absl::Minutes(5)) << "times are UTC";
  EXPECT_LT(*job.start, absl::Now() + absl::Minutes(15)) << "times are UTC";
  EXPECT_TRUE(slurm_.Cancel(*waiting, false).ok());
  EXPECT_TRUE(slurm_.Cancel(*running, false).ok());
  AwaitEnd(*running);
}

TEST_F(SlurmCommandsTest, APreemptedJobDoesNotStartAgain) {
  request_.nodes = 2;
  script_.command = {"sleep", "300"};
  const auto low = Submit();
  ASSERT_TRUE(low.ok()) << low.status();
  AwaitState(*low, SlurmState::kRunning);
  request_.partition = "urgent";
  request_.comment = "tandem:urgent:1";
  script_.attempt_folder = folder_ + "/attempt-2";
  std::filesystem::create_directories(script_.attempt_folder);
  script_.command = {"true"};
  const auto high = Submit();
  ASSERT_TRUE(high.ok()) << high.status();
  EXPECT_EQ(AwaitEnd(*low).state, SlurmState::kPreempted);
  EXPECT_EQ(AwaitEnd(*high).state, SlurmState::kCompleted);
}

TEST_F(SlurmCommandsTest, ForeignJobsStayOut) {
  std::ofstream(request_.script_path) << "#!/bin/sh\nsleep 300\n";
  const auto sbatch = [this](std::vector<std::string> arguments) {
    Command command;
    command.program = "sbatch";
    command.path = getenv("PATH");
    command.environment = {absl::StrCat("SLURM_CONF=", getenv("SLURM_CONF")), "PATH=/usr/bin:/bin"};
    command.arguments = {"--parsable", "--hold", "--output=/dev/null"};
    command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
    command.arguments.push_back(request_.script_path);
    const auto result = RunCommand(command);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->exit_code, 0) << result->standard_error;
    return result->standard_output.substr(0, result->standard_output.find('\n'));
  };
  std::vector<std::string> foreign = {
      sbatch({"--comment=a|b\ntandem-job|1|x", "--job-name=tandem:x:1\n|tandem-end"}),
      sbatch({"--comment="}),
      sbatch({"--array=1-5"}),
      sbatch({"--comment=not tandem:x:1"}),
      // Another user's job with a tag of this user.
      sbatch({absl::StrCat("--comment=", request_.comment), "--uid=nobody", "--chdir=/tmp"}),
  };
  const auto jobs = slurm_.Poll();
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  for (const SlurmJob& job : *jobs) {
    for (const std::string& id : foreign) EXPECT_NE(job.id, id);
    EXPECT_THAT(job.comment, StartsWith("tandem:"));
  }
  const auto found = slurm_.Find(request_.comment);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->has_value());
  for (const std::string& id : foreign) EXPECT_TRUE(slurm_.Cancel(id, false).ok()) << id;
}

TEST_F(SlurmCommandsTest, ListsPartitions) {
  const auto partitions = slurm_.Partitions();
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_THAT(*partitions, SizeIs(3));
  const SlurmPartition& work = (*partitions)[0];
  EXPECT_EQ(work.name, "work");
  EXPECT_TRUE(work.is_default);
  EXPECT_TRUE(work.is_up);
  EXPECT_EQ(work.time_limit, absl::InfiniteDuration());
  EXPECT_EQ(work.nodes, 2);
  EXPECT_EQ(work.cpus, 2);
  EXPECT_EQ(work.cpus_per_node, 1);
  EXPECT_EQ(work.gpus, 4);
  EXPECT_EQ(work.gpus_per_node, 2);
  const SlurmPartition& brief = (*partitions)[2];
  EXPECT_EQ(brief.name, "brief");
  EXPECT_FALSE(brief.is_default);
  EXPECT_EQ(brief.nodes, 1);
  EXPECT_EQ(brief.time_limit, absl::Minutes(5));
}

TEST_F(SlurmCommandsTest, SlurmsObjectionsNameTheField) {
  const auto test = [this](const std::function<void(SlurmRequest&)>& change) {
    SlurmRequest request = request_;
    change(request);
    const absl::Status status = slurm_.Test(request);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return FieldsOf(status);
  };
  EXPECT_TRUE(slurm_.Test(request_).ok()) << slurm_.Test(request_);
  EXPECT_THAT(test([](SlurmRequest& request) { request.partition = "nowhere"; }), ElementsAre("partition"));
  EXPECT_THAT(test([](SlurmRequest& request) { request.nodes = 100; }), ElementsAre("nodes"));
  EXPECT_THAT(test([](SlurmRequest& request) { request.cpus_per_task = 64; }),
              ElementsAre(::testing::AnyOf("nodes", "cpus_per_task")));
  EXPECT_THAT(test([](SlurmRequest& request) { request.gpus_per_node = 3; }),
              ElementsAre(::testing::AnyOf("nodes", "gpus_per_node")));
  EXPECT_THAT(test([](SlurmRequest& request) {
                request.partition = "brief";
                request.time_limit = absl::Hours(1);
              }),
              ElementsAre("time_limit"));
  EXPECT_THAT(test([](SlurmRequest& request) { request.extra_arguments = {"--constrain-me"}; }),
              ElementsAre("extra_arguments"));
  EXPECT_THAT(test([](SlurmRequest& request) { request.extra_arguments = {"--constraint=no-such"}; }),
              ElementsAre("extra_arguments"));
}

using SlurmAwayTest = SlurmTest;

TEST_F(SlurmAwayTest, EveryCallSaysThatThereIsNoAnswer) {
  SlurmCommandClient::Options options;
  options.time_limit = absl::Seconds(2);
  SlurmCommandClient slurm(options);
  std::ofstream(request_.script_path) << BatchScript(script_);
  EXPECT_TRUE(absl::IsUnavailable(slurm.Submit(request_).status()));
  EXPECT_TRUE(absl::IsUnavailable(slurm.Test(request_)));
  EXPECT_TRUE(absl::IsUnavailable(slurm.Poll().status()));
  EXPECT_TRUE(absl::IsUnavailable(slurm.Find("tandem:x:1").status()));
  EXPECT_TRUE(absl::IsUnavailable(slurm.Cancel("1", false)));
  EXPECT_TRUE(absl::IsUnavailable(slurm.Partitions().status()));
}

using SlurmNodeTest = SlurmTest;

TEST_F(SlurmNodeTest, StartsAJobThatLasts) {
  request_.nodes = 2;
  request_.comment = kLastingComment;
  script_.command = {"sh", "-c", "echo runs; sleep 300"};
  script_.task_output = folder_ + "/rank-";
  const auto id = Submit();
  ASSERT_TRUE(id.ok()) << id.status();
  // If a node fails before srun starts its task, the job's state is FAILED instead of NODE_FAIL.
  for (const int rank : {0, 1}) AwaitText(RankFile(rank), "runs");
}

TEST_F(SlurmNodeTest, TheJobEndsWithItsNode) {
  const auto found = slurm_.Find(kLastingComment);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ(AwaitEnd((*found)->id).state, SlurmState::kNodeFail);
}

}  // namespace
}  // namespace tandem
