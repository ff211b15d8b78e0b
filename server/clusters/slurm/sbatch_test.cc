#include "server/clusters/slurm/sbatch.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/field_violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

SlurmRequest Request() {
  SlurmRequest request;
  request.name = "lenet | \"x\" 'y'";
  request.partition = "work";
  request.comment = "tandem:lenet-abc:2";
  request.nodes = 2;
  request.cpus_per_task = 3;
  request.gpus_per_node = 4;
  request.time_limit = absl::Hours(30);
  request.script_path = "/shared/jobs/a b/attempt-2/batch.sh";
  request.output_path = "/shared/jobs/50%j/worker.log";
  request.work_folder = "/shared/jobs/a b";
  return request;
}

std::vector<std::string> FieldsOf(const absl::Status& status) {
  std::vector<std::string> fields;
  for (const FieldViolation& violation : GetFieldViolations(status)) fields.push_back(violation.field);
  return fields;
}

CommandResult Failed(std::string errors, int code = 1) { return {code, "", std::move(errors)}; }

TEST(SbatchTest, SubmitsWithFixedOptions) {
  SlurmRequest request = Request();
  request.extra_arguments = {"--constraint=a100", "--exclusive"};
  ASSERT_TRUE(CheckSlurmRequest(request, false).ok()) << CheckSlurmRequest(request, false);
  EXPECT_THAT(
      SubmitArguments(request),
      ElementsAre("--constraint=a100", "--exclusive", "--job-name=lenet | \"x\" 'y'", "--partition=work",
                  "--comment=tandem:lenet-abc:2", "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=3",
                  "--gres=gpu:4", "--time=1-06:00:00", "--signal=B:USR1@60", "--no-requeue", "--export=ALL",
                  "--chdir=/shared/jobs/a b", "--parsable", "--output=/shared/jobs/50%%j/worker.log",
                  "--open-mode=append", "/shared/jobs/a b/attempt-2/batch.sh"));
}

TEST(SbatchTest, UnsetFieldsAreLeftToSlurm) {
  SlurmRequest request = Request();
  request.partition.clear();
  request.gpus_per_node = 0;
  request.time_limit = absl::ZeroDuration();
  const std::vector<std::string> arguments = SubmitArguments(request);
  for (const char* option : {"--partition", "--account", "--qos", "--gres", "--time"}) {
    EXPECT_THAT(arguments, Not(Contains(HasSubstr(option))));
  }
  request.time_limit = absl::InfiniteDuration();
  EXPECT_THAT(SubmitArguments(request), Contains("--time=UNLIMITED"));
}

TEST(SbatchTest, ATestRunsNothing) {
  SlurmRequest request = Request();
  request.script_path.clear();
  request.output_path.clear();
  request.work_folder.clear();
  EXPECT_TRUE(CheckSlurmRequest(request, true).ok());
  EXPECT_FALSE(CheckSlurmRequest(request, false).ok());
  const std::vector<std::string> arguments = TestArguments(request);
  EXPECT_THAT(arguments, Contains("--test-only"));
  EXPECT_THAT(arguments, Contains("--partition=work"));
  EXPECT_THAT(arguments, Not(Contains(HasSubstr("--output"))));
}

TEST(SbatchTest, FindsEveryMistakeOfARequest) {
  SlurmRequest request;
  request.partition = std::string("a\0b", 3);
  request.comment = "tandem:x y";
  request.nodes = 0;
  request.cpus_per_task = -1;
  request.gpus_per_node = -1;
  request.time_limit = -absl::Seconds(1);
  request.script_path = "batch.sh";
  request.work_folder = "";
  request.output_path = "/a\\b";
  EXPECT_THAT(FieldsOf(CheckSlurmRequest(request, false)),
              ElementsAre("partition", "comment", "nodes", "cpus_per_task", "gpus_per_node", "time_limit",
                          "script_path", "work_folder", "output_path"));
}

TEST(SbatchTest, OnlyHarmlessExtraOptionsPass) {
  SlurmRequest request = Request();
  for (const char* argument :
       {"--constraint=a100", "--exclusive", "--wait-all-nodes=1", "--mem=4G", "--reservation=x", "--hold"}) {
    request.extra_arguments = {argument};
    EXPECT_TRUE(CheckSlurmRequest(request, false).ok()) << argument;
  }
  for (const char* argument :
       {"", "-C", "script.sh", "--", "--=x", "-Ca100", "--wrap=rm", "--wra=rm", "--array=1-9", "--arr=1-9",
        "--test-only", "--test", "--wait", "--uid=0", "--comment=tandem:a:1", "--clusters=b", "--parsable"}) {
    request.extra_arguments = {argument};
    EXPECT_THAT(FieldsOf(CheckSlurmRequest(request, false)), ElementsAre("extra_arguments")) << argument;
  }
}

TEST(SbatchTest, ReadsTheId) {
  EXPECT_EQ(*ReadSubmission({0, "123\n", ""}), "123");
  EXPECT_EQ(*ReadSubmission({0, "123;lab\n", "sbatch: a warning\n"}), "123");
}

TEST(SbatchTest, AnUnreadableIdMayBeAJob) {
  for (const char* output : {"", "\n", "Submitted batch job 123\n", "-1\n", "12 3\n", ";lab\n"}) {
    EXPECT_TRUE(absl::IsUnavailable(ReadSubmission({0, output, ""}).status())) << output;
  }
}

TEST(SbatchTest, ARefusalNamesTheField) {
  const std::pair<const char*, const char*> kCases[] = {
      {"sbatch: error: invalid partition specified: nowhere\n"
       "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
       "partition"},
      {"sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some "
       "limit)\n",
       "time_limit"},
      {"sbatch: error: Batch job submission failed: Requested node configuration is not available\n",
       "nodes"},
      {"sbatch: error: Batch job submission failed: Node count specification invalid\n", "nodes"},
      {"sbatch: error: Batch job submission failed: Invalid account or account/partition combination "
       "specified\n",
       "account"},
      {"sbatch: error: Batch job submission failed: Invalid qos specification\n", "qos"},
      {"sbatch: error: Invalid generic resource (gres) specification\n", "gpus_per_node"},
      {"sbatch: unrecognized option '--constrain-me'\nTry \"sbatch --help\" for more information\n",
       "extra_arguments"},
  };
  for (const auto& [errors, field] : kCases) {
    const absl::Status status = ReadSubmission(Failed(errors)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(FieldsOf(status), ElementsAre(field)) << errors;
  }
  // sbatch exits with 255 after a wrong option.
  EXPECT_TRUE(absl::IsInvalidArgument(ReadTest(Failed("sbatch: unrecognized option '--x'\n", 255))));
  EXPECT_THAT(std::string(ReadTest(Failed(kCases[0].first)).message()),
              HasSubstr("invalid partition specified: nowhere; Batch job submission failed"));
}

TEST(SbatchTest, OtherRefusalsHaveSlurmsWords) {
  const absl::Status status = ReadTest(
      Failed("sbatch: error: QOSMaxNodePerUserLimit\nsbatch: error: Batch job submission failed: Job "
             "violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n"));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(FieldsOf(status), IsEmpty());
  EXPECT_THAT(std::string(status.message()), HasSubstr("Job violates accounting/QOS policy"));
}

// Slurm's second line is the same for all limits.
TEST(SbatchTest, ALimitOfAnAccountIsToldByItsName) {
  const auto read = [](absl::string_view name) {
    return ReadTest(Failed(absl::StrCat("sbatch: error: ", name,
                                        "\nsbatch: error: Batch job submission failed: Job violates "
                                        "accounting/QOS policy (job submit limit, user's size and/or time "
                                        "limits)\n")));
  };
  for (const char* name : {"AssocMaxSubmitJobLimit", "AssocGrpSubmitJobsLimit", "QOSMaxSubmitJobPerUserLimit",
                           "QOSGrpSubmitJobsLimit"}) {
    EXPECT_TRUE(absl::IsAborted(read(name))) << name;
    EXPECT_THAT(std::string(read(name).message()), HasSubstr(name));
  }
  EXPECT_THAT(FieldsOf(read("QOSMaxWallDurationPerJobLimit")), ElementsAre("time_limit"));
  EXPECT_THAT(FieldsOf(read("QOSMaxGRESPerJob")), ElementsAre("gpus_per_node"));
}

TEST(SbatchTest, AfterNoAnswerTheJobMayExist) {
  for (const char* errors : {
           "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect "
           "failure)\n",
           "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n",
           "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received\n",
           "sbatch: error: Batch job submission failed: Unexpected message received\n",
           "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying\n",
           "sbatch: error: If munged is up, restart with --num-threads=10\n",
           "sbatch: error: Batch job submission failed: Protocol authentication error\n",
           "",
       }) {
    EXPECT_TRUE(absl::IsUnavailable(ReadSubmission(Failed(errors)).status())) << errors;
  }
  // Killed by SIGTERM.
  EXPECT_TRUE(absl::IsUnavailable(ReadSubmission(Failed("sbatch: error: partition", 143)).status()));
}

}  // namespace
}  // namespace tandem
