#include "server/clusters/slurm/slurm_command_client.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/env.h"
#include "engine/base/field_violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kHeader[] = "tandem-job|JOBID|STATE|START_TIME|NODELIST|REASON|COMMENT|tandem-end\n";

// A folder with programs of the test in place of Slurm's.
class SlurmCommandClientTest : public ::testing::Test {
 protected:
  // Writes a program. It notes its arguments and its environment, and then runs the shell code.
  void Fake(const std::string& program, const std::string& code) {
    const std::string path = absl::StrCat(folder_.path(), "/", program);
    std::ofstream(path) << "#!/bin/sh\nprintf '%s\\n' \"$@\" >" << path << ".arguments\nenv >" << path
                        << ".environment\n"
                        << code << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  // Returns the lines that the program noted.
  std::vector<std::string> Noted(const std::string& name) const {
    return absl::StrSplit(ContentOrEmpty(absl::StrCat(folder_.path(), "/", name)), '\n', absl::SkipEmpty());
  }
  SlurmCommandClient Client(absl::Duration time_limit = absl::Seconds(30)) const {
    SlurmCommandClient::Options options;
    options.time_limit = time_limit;
    options.path = absl::StrCat(folder_.path(), ":/usr/bin:/bin");
    return SlurmCommandClient(options);
  }
  static SlurmRequest Request() {
    SlurmRequest request;
    request.name = "a 'job' | with \"odd\" $names";
    request.comment = "tandem:lenet:1";
    request.script_path = "/shared/batch.sh";
    request.output_path = "/shared/out";
    request.work_folder = "/shared";
    return request;
  }

  const TemporaryFolder folder_;
};

TEST_F(SlurmCommandClientTest, Submits) {
  Fake("sbatch", "echo '57;lab'");
  const auto id = Client().Submit(Request());
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(*id, "57");
  EXPECT_THAT(Noted("sbatch.arguments"), Contains("--job-name=a 'job' | with \"odd\" $names"));
}

TEST_F(SlurmCommandClientTest, ProgramsGetASmallEnvironment) {
  setenv("TANDEM_TEST_SECRET", "secret", 1);
  setenv("SBATCH_PARTITION", "wrong", 1);
  setenv("SLURM_CONF", "/etc/slurm/lab.conf", 1);
  Fake("sbatch", "echo 57");
  EXPECT_TRUE(Client().Submit(Request()).ok());
  unsetenv("TANDEM_TEST_SECRET");
  unsetenv("SBATCH_PARTITION");
  unsetenv("SLURM_CONF");
  const std::vector<std::string> environment = Noted("sbatch.environment");
  EXPECT_THAT(environment, Contains("TZ=UTC"));
  EXPECT_THAT(environment, Contains("SLURM_CONF=/etc/slurm/lab.conf"));
  EXPECT_THAT(environment, Not(Contains(HasSubstr("secret"))));
  EXPECT_THAT(environment, Not(Contains(HasSubstr("SBATCH"))));
}

TEST_F(SlurmCommandClientTest, ALostSubmissionIsUnavailable) {
  Fake("sbatch", "sleep 60; echo 57");
  EXPECT_TRUE(absl::IsUnavailable(Client(absl::Milliseconds(100)).Submit(Request()).status()));
  Fake("sbatch",
       "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit "
       "1");
  EXPECT_TRUE(absl::IsUnavailable(Client().Submit(Request()).status()));
}

TEST_F(SlurmCommandClientTest, WithoutSlurmItSaysWhatToInstall) {
  SlurmCommandClient::Options options;
  options.path = folder_.path();
  SlurmCommandClient client(options);
  for (const absl::Status& status :
       {client.Submit(Request()).status(), client.Test(Request()), client.Poll().status(),
        client.Find("tandem:x:1").status(), client.Cancel("1", false), client.Partitions().status()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("slurm-client"));
  }
}

TEST_F(SlurmCommandClientTest, NamesTheProgramThatIsNotInstalled) {
  SlurmCommandClient::Options options;
  options.path = folder_.path();
  for (const char* program : {"sbatch", "squeue", "sinfo"}) Fake(program, "exit 1");
  EXPECT_THAT(std::string(SlurmCommandClient(options).CheckInstalled().message()), HasSubstr("scancel"));
  Fake("scancel", "exit 0");
  EXPECT_TRUE(SlurmCommandClient(options).CheckInstalled().ok());
}

TEST_F(SlurmCommandClientTest, AJobBeyondALimitOfJobsPassesTheTestAndIsNotSubmitted) {
  Fake("sbatch", "echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2; exit 1");
  Fake("sinfo", "echo 'tandem-partition|work*|up|infinite|2|idle|1|0/2/0/2|(null)|tandem-end'");
  EXPECT_TRUE(Client().Test(Request()).ok()) << Client().Test(Request());
  EXPECT_TRUE(absl::IsAborted(Client().Submit(Request()).status()));
}

TEST_F(SlurmCommandClientTest, PollAsksOnceForThisUsersJobs) {
  Fake("squeue",
       absl::StrCat("printf '", kHeader, "tandem-job|9|RUNNING|N/A|n1|None|tandem:x:1|tandem-end\\n'"));
  const auto jobs = Client().Poll();
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_THAT(*jobs, SizeIs(1));
  EXPECT_EQ((*jobs)[0].id, "9");
  EXPECT_THAT(Noted("squeue.arguments"), ElementsAre(absl::StrCat("--user=", getuid()), "--states=all", "-o",
                                                     "tandem-job|%i|%T|%S|%N|%r|%k|tandem-end"));
}

TEST_F(SlurmCommandClientTest, FindPrefersALivingJob) {
  Fake("squeue", absl::StrCat("printf '", kHeader,
                              "tandem-job|9|FAILED|N/A|n1|NonZeroExitCode|tandem:x:1|tandem-end\\n",
                              "tandem-job|11|RUNNING|N/A|n1|None|tandem:x:1|tandem-end\\n",
                              "tandem-job|10|RUNNING|N/A|n2|None|tandem:x:1|tandem-end\\n",
                              "tandem-job|8|RUNNING|N/A|n3|None|tandem:x:10|tandem-end\\n'"));
  const auto found = Client().Find("tandem:x:1");
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->id, "10");
  const auto none = Client().Find("tandem:x:2");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->has_value());
}

TEST_F(SlurmCommandClientTest, CancelIsDoneIfTheJobIsGone) {
  Fake("scancel", "exit 0");
  EXPECT_TRUE(Client().Cancel("12", false).ok());
  EXPECT_THAT(Noted("scancel.arguments"), ElementsAre("12"));
  EXPECT_TRUE(Client().Cancel("12", true).ok());
  EXPECT_THAT(Noted("scancel.arguments"), ElementsAre("--state=RUNNING", "--batch", "--signal=TERM", "12"));
  Fake("scancel", "echo 'scancel: error: Kill job error on job id 12: Invalid job id specified' >&2; exit 1");
  EXPECT_TRUE(Client().Cancel("12", false).ok());
  Fake("scancel",
       "echo 'scancel: error: Kill job error on job id 12: Unable to contact slurm controller' >&2; exit 1");
  EXPECT_TRUE(absl::IsUnavailable(Client().Cancel("12", false)));
  for (const char* id : {"", "--state=RUNNING", "12 13", "12_3", "-u"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Client().Cancel(id, false))) << id;
  }
}

TEST_F(SlurmCommandClientTest, ATimeLimitAboveThePartitionsIsRefused) {
  Fake("sbatch", "exit 0");
  Fake("sinfo", R"(echo 'tandem-partition|work*|up|1:00:00|2|idle|1|0/2/0/2|(null)|tandem-end'
echo 'tandem-partition|long|up|infinite|2|idle|1|0/2/0/2|(null)|tandem-end')");
  SlurmRequest request = Request();
  EXPECT_TRUE(Client().Test(request).ok());
  request.time_limit = absl::Hours(1);
  EXPECT_TRUE(Client().Test(request).ok());
  request.time_limit = absl::Hours(2);
  const absl::Status status = Client().Test(request);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("0-02:00:00 is longer than the limit of the partition \"work\", 0-01:00:00"));
  request.partition = "long";
  EXPECT_TRUE(Client().Test(request).ok());
}

TEST_F(SlurmCommandClientTest, NodesThatAreAwayAreNoMistake) {
  Fake("sbatch", "echo 'allocation failure: Requested node configuration is not available' >&2; exit 1");
  Fake("sinfo", R"(echo 'tandem-partition|work*|up|infinite|2|idle|1|0/2/0/2|(null)|tandem-end'
echo 'tandem-partition|work*|up|infinite|2|unk|1|0/0/2/2|(null)|tandem-end')");
  SlurmRequest request = Request();
  const std::pair<int, bool> kCases[] = {{2, false}, {3, true}, {4, true}, {5, false}};
  for (const auto& [nodes, can_wait] : kCases) {
    request.nodes = nodes;
    EXPECT_EQ(Client().Test(request).ok(), can_wait) << nodes;
  }
}

TEST_F(SlurmCommandClientTest, ARefusalOfNodesSaysTheNumbers) {
  Fake("sbatch", "echo 'allocation failure: Requested node configuration is not available' >&2; exit 1");
  Fake("sinfo", "echo 'tandem-partition|work*|up|infinite|2|idle|4|0/8/0/8|gpu:a100:1|tandem-end'");
  struct Case {
    int nodes, tasks, cpus, gpus;
    const char* field;
    const char* asked;
  };
  const Case kCases[] = {{3, 1, 1, 0, "nodes", "3 nodes with 1 core and 0 GPUs each"},
                         {1, 2, 3, 1, "cpus_per_task", "1 node with 6 cores and 1 GPU, --exclusive"},
                         {2, 1, 1, 2, "gpus_per_node", "2 nodes with 1 core and 2 GPUs each"}};
  for (const Case& one : kCases) {
    SlurmRequest request = Request();
    request.nodes = one.nodes;
    request.tasks_per_node = one.tasks;
    request.cpus_per_task = one.cpus;
    request.gpus_per_node = one.gpus;
    if (one.tasks > 1) request.extra_arguments = {"--exclusive"};
    const absl::Status status = Client().Test(request);
    const std::vector<FieldViolation> violations = GetFieldViolations(status);
    ASSERT_THAT(violations, SizeIs(1)) << status;
    EXPECT_EQ(violations[0].field, one.field);
    EXPECT_THAT(
        violations[0].description,
        HasSubstr(absl::StrCat("Requested node configuration is not available; the job asks for ", one.asked,
                               ", and the partition \"work\" has 2 nodes with 4 cores and 1 "
                               "GPU each; ask for less")));
  }
}

// Each node could give the cores or the GPUs, but no node gives both.
TEST_F(SlurmCommandClientTest, ARefusalInAMixedPartitionBlamesNoFieldThatFits) {
  Fake("sbatch", "echo 'allocation failure: Requested node configuration is not available' >&2; exit 1");
  Fake("sinfo", R"(echo 'tandem-partition|work*|up|infinite|2|idle|64|0/128/0/128|(null)|tandem-end'
echo 'tandem-partition|work*|up|infinite|1|idle|8|0/8/0/8|gpu:a100:8|tandem-end')");
  SlurmRequest request = Request();
  request.gpus_per_node = 4;
  request.cpus_per_task = 16;
  absl::Status status = Client().Test(request);
  ASSERT_THAT(GetFieldViolations(status), SizeIs(1)) << status;
  EXPECT_EQ(GetFieldViolations(status)[0].field, "nodes");
  EXPECT_THAT(GetFieldViolations(status)[0].description,
              HasSubstr("the job asks for 1 node with 16 cores and 4 GPUs, and the partition \"work\" has 3 "
                        "nodes with up to 64 cores and up to 8 GPUs each; ask for less: set nodes, or lower "
                        "replicas.count"));
  request.gpus_per_node = 9;
  status = Client().Test(request);
  ASSERT_THAT(GetFieldViolations(status), SizeIs(1)) << status;
  EXPECT_EQ(GetFieldViolations(status)[0].field, "gpus_per_node");
}

TEST_F(SlurmCommandClientTest, ARefusalOfAPartitionNamesThePartitions) {
  Fake("sbatch", "echo 'sbatch: error: invalid partition specified: wrok' >&2; exit 1");
  Fake("sinfo", R"(echo 'tandem-partition|work*|up|infinite|2|idle|1|0/2/0/2|(null)|tandem-end'
echo 'tandem-partition|long|up|infinite|2|idle|1|0/2/0/2|(null)|tandem-end')");
  SlurmRequest request = Request();
  request.partition = "wrok";
  const std::vector<FieldViolation> violations = GetFieldViolations(Client().Test(request));
  ASSERT_THAT(violations, SizeIs(1));
  EXPECT_EQ(violations[0].field, "partition");
  EXPECT_EQ(
      violations[0].description,
      "Slurm refuses the job: invalid partition specified: wrok; the partitions are \"work\", \"long\"");
}

TEST_F(SlurmCommandClientTest, ListsPartitions) {
  Fake("sinfo", "echo 'tandem-partition|work*|up|infinite|2|idle|1|0/2/0/2|(null)|tandem-end'");
  const auto partitions = Client().Partitions();
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_THAT(*partitions, SizeIs(1));
  EXPECT_EQ((*partitions)[0].free_nodes, 2);
  Fake("sinfo", "exit 0");
  EXPECT_TRUE(absl::IsUnavailable(Client().Partitions().status()));
}

// A sick controller: slow, empty, garbled, refused and cut answers between good answers.
TEST_F(SlurmCommandClientTest, ThousandPollsGiveNoFalseAnswer) {
  const std::string number = folder_.path() + "/poll";
  const std::string good =
      absl::StrCat("printf '", kHeader, "tandem-job|9|RUNNING|N/A|n1|None|tandem:x:1|tandem-end\\n'");
  Fake("squeue", absl::StrCat("read n <", number, R"sh(
case $((n % 10)) in
  1) [ $((n % 50)) -eq 1 ] && exec sleep 60; exit 0 ;;
  2) exit 0 ;;
  3) echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1 ;;
  4) printf 'tandem-job|JOBID|STA' ;;
  5) printf '\000\377garbage\n' ;;
  6) echo; exit 0 ;;
  7) printf '%s\n' 'slurm_load_jobs error: Socket timed out'; exit 0 ;;
  8) )sh",
                              good, R"sh( | head -c 100 ;;
  9) kill -9 $$ ;;
  0) )sh",
                              good, " ;;\nesac"));
  SlurmCommandClient client = Client(absl::Milliseconds(500));
  int good_answers = 0;
  for (int poll = 0; poll < 1000; ++poll) {
    std::ofstream(number) << poll << "\n";
    const auto jobs = client.Poll();
    if (!jobs.ok()) {
      EXPECT_TRUE(absl::IsUnavailable(jobs.status())) << poll << ": " << jobs.status();
      continue;
    }
    ++good_answers;
    EXPECT_EQ(poll % 10, 0);
    ASSERT_THAT(*jobs, SizeIs(1)) << poll;
    EXPECT_EQ((*jobs)[0].id, "9");
  }
  // A loaded machine may make a good answer late.
  EXPECT_GE(good_answers, 50);
  EXPECT_LE(good_answers, 100);
}

}  // namespace
}  // namespace tandem
