// A job's whole life through the real programs: submitted from the command line, trained, watched, fetched,
// deleted.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "engine/base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/integration/api.h"
#include "tests/integration/cli.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/processes.h"
#include "tests/integration/programs.h"
#include "tests/integration/scratch_folder.h"
#include "tests/integration/subprocess.h"
#include "tests/integration/watcher.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ProgramsTest, SayOneVersion) {
  ScratchFolder scratch;
  std::set<std::string> versions;
  for (const std::string& program : {DaemonProgram(), WorkerProgram(), CliProgram()}) {
    const std::string out = scratch.File(std::filesystem::path(program).filename().string());
    const auto process = Subprocess::Start(
        {.arguments = {program, "--version"}, .stdout_path = out, .stderr_path = scratch.File("err")});
    ASSERT_TRUE(process.ok()) << process.status();
    EXPECT_EQ((*process)->Wait(absl::Seconds(60)), 0) << program;
    // "tandemd 1.2.3".
    const std::string text = ReadFile(out);
    versions.insert(text.substr(text.find(' ')));
  }
  EXPECT_THAT(versions, SizeIs(1));
}

// A job that fails with its worker.
v1::JobSpec WithoutRestarts(v1::JobSpec spec) {
  spec.set_max_restarts(0);
  return spec;
}

class FirstJobTest : public DaemonFixture {
 protected:
  explicit FirstJobTest(std::vector<std::string> daemon_arguments = {})
      : DaemonFixture(/*cpu_devices=*/2, std::move(daemon_arguments)) {}

  // Nothing runs on after a test's jobs have ended, and their devices are free.
  void ExpectIdle() {
    EXPECT_TRUE(WaitUntil([&] { return daemon_.Workers().empty(); })) << daemon_.Log();
    // The daemon frees a device when it has seen the worker's end.
    Api api(daemon_);
    const auto is_free = [](const v1::Device& device) { return device.job().empty(); };
    EXPECT_TRUE(WaitUntil([&] { return std::ranges::all_of(api.Devices(), is_free); })) << daemon_.Log();
  }

  // Names of the files below a job's folder.
  std::vector<std::string> FilesOf(const std::string& job) {
    std::vector<std::string> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(daemon_.JobFolder(job), error)) {
      if (entry.is_regular_file()) files.push_back(entry.path().filename().string());
    }
    return files;
  }
};

TEST_F(FirstJobTest, TrainsWithTwoReplicasAndGivesTheModel) {
  const std::string job = cli_.Train(SmallJobYaml({.replicas = 2}));
  ASSERT_NE(job, "");
  ExpectIdle();

  const std::vector<v1::JobEvent> events = ReadEvents(daemon_, job);
  ExpectWholeLog(events, job);
  std::vector<v1::EpochSummary> epochs;
  for (const v1::JobEvent& event : events) {
    if (event.has_epoch()) epochs.push_back(event.epoch());
  }
  ASSERT_THAT(epochs, SizeIs(2));
  for (const v1::EpochSummary& epoch : epochs) {
    EXPECT_EQ(epoch.training().samples(), 256);
    EXPECT_EQ(epoch.validation().samples(), 64);
    EXPECT_TRUE(epoch.validation().metrics().contains("accuracy"));
    EXPECT_GT(epoch.images_per_second(), 0);
    EXPECT_EQ(epoch.learning_rate(), 0.1);
    ASSERT_EQ(epoch.replicas_size(), 2);
    EXPECT_EQ(epoch.replicas(0).samples() + epoch.replicas(1).samples(), 256);
    EXPECT_NE(epoch.replicas(0).device(), epoch.replicas(1).device());
  }
  EXPECT_LT(epochs[1].training().loss(), epochs[0].training().loss());

  const v1::Job record = Api(daemon_).Get(job);
  EXPECT_EQ(record.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(record.reason(), v1::STATE_REASON_COMPLETED);
  EXPECT_EQ(record.last_sequence(), events.size());
  EXPECT_GT(record.planned_memory_bytes(), 0);

  const CliResult download = cli_.Run({"download", job, "--to", scratch_.File("fetched")});
  EXPECT_EQ(download.exit_code, 0) << download;
  bool has_model = false;
  for (const v1::Artifact& artifact : record.artifacts()) {
    const std::string content = ReadFile(scratch_.File("fetched/" + artifact.name()));
    EXPECT_EQ(content.size(), artifact.size_bytes()) << artifact.name();
    EXPECT_EQ(Sha256Of(content).value(), artifact.sha256()) << artifact.name();
    has_model = has_model || artifact.name() == "model.safetensors";
  }
  EXPECT_TRUE(has_model);
  // The fetched job file is valid.
  const CliResult again = cli_.Run({"validate", scratch_.File("fetched/job.yaml")});
  EXPECT_EQ(again.exit_code, 0) << again;

  for (const std::string& file : FilesOf(job)) {
    EXPECT_FALSE(absl::StrContains(file, "tmp") || absl::StrContains(file, ".new") ||
                 absl::StrContains(file, "partial"))
        << file << " was left";
  }
}

TEST_F(FirstJobTest, TrainsLenetOnFashionMnist) {
  const std::string job = cli_.Train(FashionMnistYaml(4000, 1000, 2, 2));
  ASSERT_NE(job, "");
  const v1::Job record = Api(daemon_).Get(job);
  EXPECT_EQ(record.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(record.last_epoch().epoch(), 2);
  EXPECT_EQ(record.last_epoch().training().samples(), 4000);
  EXPECT_EQ(record.last_epoch().validation().samples(), 1000);
  EXPECT_GT(record.last_epoch().validation().metrics().at("accuracy"), 0.7);
  ExpectIdle();
}

TEST_F(FirstJobTest, TheSameJobGivesTheSameModel) {
  const std::string yaml = FashionMnistYaml(1000, 100, 1, 2);
  std::vector<std::string> digests;
  for (int run = 0; run < 2; ++run) {
    const v1::Job record = Api(daemon_).Get(cli_.Train(yaml));
    for (const v1::Artifact& artifact : record.artifacts()) {
      if (artifact.name() == "model.safetensors") digests.push_back(artifact.sha256());
    }
  }
  ASSERT_THAT(digests, SizeIs(2));
  EXPECT_EQ(digests[0], digests[1]);
}

TEST_F(FirstJobTest, EveryCommandAnswers) {
  const std::string job = cli_.Train(SmallJobYaml({}));
  ASSERT_NE(job, "");
  const std::string id = job.substr(5);
  const std::vector<std::vector<std::string>> commands = {
      {"list"}, {"describe", id}, {"describe", job}, {"watch", id}, {"logs", id}, {"devices"}, {"datasets"}};
  for (const std::vector<std::string>& command : commands) {
    const CliResult plain = cli_.Run(command);
    EXPECT_EQ(plain.exit_code, 0) << command[0] << ": " << plain;
    if (command[0] == "logs") continue;
    EXPECT_NE(plain.out, "") << command[0];
    std::vector<std::string> as_json = command;
    as_json.insert(as_json.end(), {"-o", "json"});
    const CliResult json = cli_.Run(as_json);
    EXPECT_EQ(json.exit_code, 0) << command[0] << ": " << json;
    // A stream is a line of JSON an event, everything else one value.
    const std::string text = command[0] == "watch" ? json.out.substr(0, json.out.find('\n')) : json.out;
    EXPECT_FALSE(nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false).is_discarded())
        << command[0] << ": " << json;
  }
  EXPECT_THAT(cli_.Run({"list"}).out, HasSubstr(id));
  EXPECT_THAT(cli_.Run({"list", "-o", "wide"}).out, HasSubstr(id));
  EXPECT_THAT(cli_.Run({"describe", id, "-o", "yaml"}).out, HasSubstr("global_batch_size"));
  EXPECT_THAT(cli_.Run({"devices"}).out, HasSubstr("cpu:1"));
  EXPECT_THAT(cli_.Run({"datasets"}).out, HasSubstr("fashion-mnist"));

  const CliResult deleted = cli_.Run({"delete", id});
  EXPECT_EQ(deleted.exit_code, 0) << deleted;
  EXPECT_THAT(Api(daemon_).List(), IsEmpty());
  EXPECT_TRUE(WaitUntil([&] { return !std::filesystem::exists(daemon_.JobFolder(job)); }));
  EXPECT_EQ(cli_.Run({"describe", id}).exit_code, 2);
}

TEST_F(FirstJobTest, EveryTemplateIsAValidJob) {
  const CliResult listed = cli_.Run({"init"});
  EXPECT_EQ(listed.exit_code, 0) << listed;
  for (const std::string name : {"lenet", "mlp", "synthetic"}) {
    EXPECT_THAT(listed.out, HasSubstr(name));
    const CliResult printed = cli_.Run({"init", name});
    ASSERT_EQ(printed.exit_code, 0) << printed;
    EXPECT_THAT(printed.out, HasSubstr("#"));
    const CliResult valid = cli_.Run({"validate", scratch_.Write(name + ".yaml", printed.out)});
    EXPECT_EQ(valid.exit_code, 0) << name << ": " << valid;
  }
  EXPECT_THAT(Api(daemon_).List(), IsEmpty());
}

TEST_F(FirstJobTest, SetChangesTheFile) {
  const CliResult result = cli_.Run({"submit", scratch_.Write("job.yaml", SmallJobYaml({})), "--follow",
                                     "--set", "training.epochs=3", "--set", "name=changed"});
  ASSERT_EQ(result.exit_code, 0) << result;
  const std::vector<v1::Job> jobs = Api(daemon_).List();
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].spec().training().epochs(), 3);
  EXPECT_EQ(jobs[0].last_epoch().epoch(), 3);
  EXPECT_THAT(jobs[0].name(), HasSubstr("changed"));
}

TEST_F(FirstJobTest, AJobWhoseLossExplodesFails) {
  const CliResult result = cli_.Run({"submit", scratch_.Write("job.yaml", SmallJobYaml({.epochs = 20})),
                                     "--follow", "--set", "training.optimizer.sgd.learning_rate=1e30"});
  EXPECT_EQ(result.exit_code, 1) << result;
  const std::vector<v1::Job> jobs = Api(daemon_).List();
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(jobs[0].reason(), v1::STATE_REASON_NON_FINITE_LOSS) << jobs[0].DebugString();
  EXPECT_NE(jobs[0].message(), "");
  ExpectIdle();
}

TEST_F(FirstJobTest, ExitCodesOfBadUsageAndAnAbsentDaemon) {
  EXPECT_EQ(cli_.Run({"no-such-command"}).exit_code, 2);
  EXPECT_EQ(cli_.Run({"submit", scratch_.File("no-such-file.yaml")}).exit_code, 2);
  EXPECT_EQ(cli_.Run({"describe", "no-such-job"}).exit_code, 2);
  Cli nowhere(scratch_);
  // A port of loopback that nothing listens on.
  nowhere.SetEnvironment("TANDEM_ADDRESS", "127.0.0.1:1");
  nowhere.SetEnvironment("TANDEM_TOKEN_FILE", daemon_.TokenPath());
  const CliResult absent = nowhere.Run({"list"});
  EXPECT_EQ(absent.exit_code, 4) << absent;
  EXPECT_THAT(absent.err, HasSubstr("127.0.0.1:1"));
}

TEST_F(FirstJobTest, CancelStopsARunningAndAQueuedJob) {
  Api api(daemon_);
  v1::JobSpec spec = LongJob(1000000);
  spec.mutable_replicas()->set_count(2);
  const std::string running = api.CreateAndAwait(spec, v1::JOB_STATE_RUNNING);
  const std::string queued = api.Create(spec).name();
  const auto waits = [&] { return api.Get(queued).waiting().reason() == v1::Waiting::REASON_DEVICES_BUSY; };
  EXPECT_TRUE(WaitUntil(waits)) << api.Get(queued).DebugString();
  EXPECT_EQ(api.Get(queued).waiting().position(), 1);

  const auto follower = cli_.Start({"watch", running});
  // A user who follows the waiting job sees the reason, in the queue's words.
  const auto waiter = cli_.Start({"watch", queued});
  const std::string why = api.Get(queued).waiting().message();
  EXPECT_TRUE(WaitUntil([&] {
    return absl::StrContains(waiter->Out(), "waits: #1 in the queue") &&
           absl::StrContains(waiter->Out(), why);
  })) << waiter->Out();
  EXPECT_THAT(cli_.Run({"queue"}).out, HasSubstr(why));
  EXPECT_EQ(cli_.Run({"cancel", queued}).exit_code, 0);
  EXPECT_EQ(waiter->Finish().exit_code, 3);
  EXPECT_EQ(api.Get(queued).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(cli_.Run({"cancel", running}).exit_code, 0);
  const CliResult followed = follower->Finish();
  EXPECT_EQ(followed.exit_code, 3) << followed;
  EXPECT_EQ(api.Get(running).reason(), v1::STATE_REASON_CANCEL_REQUESTED);
  ExpectWholeLog(ReadEvents(daemon_, running), running);
  ExpectIdle();
}

TEST_F(FirstJobTest, InterruptDetaches) {
  Api api(daemon_);
  const auto run =
      cli_.Start({"submit", scratch_.Write("job.yaml", SmallJobYaml({.epochs = 1000000})), "--follow"});
  ASSERT_TRUE(WaitUntil([&] { return !api.List().empty(); }));
  const std::string job = api.List()[0].name();
  api.WaitFor(job, v1::JOB_STATE_RUNNING);
  ASSERT_TRUE(WaitUntil([&] { return absl::StrContains(run->Out() + run->Err(), job.substr(5)); }));
  run->Signal(SIGINT);
  const CliResult result = run->Finish();
  // Shells use this code for an end by SIGINT.
  EXPECT_EQ(result.exit_code, 130) << result;
  EXPECT_THAT(result.err, HasSubstr("tandem watch " + job.substr(5)));
  EXPECT_EQ(api.Get(job).state(), v1::JOB_STATE_RUNNING);
  api.Cancel(job);
  api.WaitFor(job, v1::JOB_STATE_CANCELLED);
  ExpectIdle();
}

TEST_F(FirstJobTest, TheSameRequestGivesTheSameJob) {
  Api api(daemon_);
  const std::string first = api.Create(SmallJob({}), "request-1").name();
  daemon_.Kill();
  ASSERT_TRUE(daemon_.Start().ok()) << daemon_.Log();
  EXPECT_EQ(api.Create(SmallJob({}), "request-1").name(), first);
  EXPECT_THAT(api.List(), SizeIs(1));
  EXPECT_EQ(api.WaitFor(first, v1::JOB_STATE_SUCCEEDED).state(), v1::JOB_STATE_SUCCEEDED);
}

TEST_F(FirstJobTest, TerminationLeavesTheWorkerToTheNextDaemon) {
  Api api(daemon_);
  const std::string job = api.CreateAndAwait(LongJob(1000000), v1::JOB_STATE_RUNNING);
  Watcher watcher(daemon_, job);
  ASSERT_TRUE(watcher.WaitForEvents(20, absl::Minutes(1)));
  EXPECT_EQ(CheckHealth(daemon_), 1);
  const std::vector<pid_t> workers = daemon_.Workers();
  ASSERT_THAT(workers, SizeIs(1));

  // It does not wait for the job, which would last for much longer than this waits.
  EXPECT_EQ(daemon_.Terminate(), 0) << daemon_.Log();
  EXPECT_EQ(daemon_.Workers(), workers);

  ASSERT_TRUE(daemon_.Start().ok()) << daemon_.Log();
  const v1::Job adopted = api.Get(job);
  EXPECT_EQ(adopted.attempt(), 1);
  EXPECT_EQ(daemon_.Workers(), workers);
  ASSERT_TRUE(watcher.WaitForEvents(watcher.count() + 20, absl::Minutes(1))) << daemon_.Log();
  api.Cancel(job);
  ASSERT_TRUE(watcher.WaitForEnd(absl::Minutes(3))) << daemon_.Log();
  EXPECT_TRUE(watcher.status().ok()) << watcher.status().error_code() << " "
                                     << watcher.status().error_message();
  EXPECT_EQ(api.Get(job).state(), v1::JOB_STATE_CANCELLED);
  ExpectWholeLog(watcher.events(), job);
  ExpectSameLog(ReadEvents(daemon_, job), watcher.events());
  ExpectIdle();
}

TEST_F(FirstJobTest, AKilledWorkerFailsItsJobAlone) {
  Api api(daemon_);
  const std::string victim = api.CreateAndAwait(WithoutRestarts(LongJob(1000000)), v1::JOB_STATE_RUNNING);
  const std::vector<pid_t> workers = daemon_.Workers();
  ASSERT_THAT(workers, SizeIs(1));
  const std::string bystander = api.Create(LongJob(300)).name();
  const auto follower = cli_.Start({"watch", victim});
  Watcher watcher(daemon_, victim);
  ASSERT_TRUE(watcher.WaitForEvents(10, absl::Minutes(1)));

  kill(workers[0], SIGKILL);
  const CliResult followed = follower->Finish();
  EXPECT_EQ(followed.exit_code, 1) << followed;
  const v1::Job record = api.Get(victim);
  EXPECT_EQ(record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(record.reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_THAT(record.message(), HasSubstr("9")) << "the signal is worth saying";
  ASSERT_TRUE(watcher.WaitForEnd(absl::Minutes(1)));
  ExpectWholeLog(watcher.events(), victim);
  EXPECT_EQ(api.WaitFor(bystander, v1::JOB_STATE_SUCCEEDED).state(), v1::JOB_STATE_SUCCEEDED);
  ExpectIdle();
}

class ShortGraceTest : public FirstJobTest {
 protected:
  ShortGraceTest() : FirstJobTest({"--cancel-grace", "1s", "--data-folder", "/no/such/folder"}) {}
};

TEST_F(ShortGraceTest, CancelStopsAWorkerThatDoesNotAnswer) {
  Api api(daemon_);
  const std::string job = api.CreateAndAwait(LongJob(1000000), v1::JOB_STATE_RUNNING);
  const std::vector<pid_t> workers = daemon_.Workers();
  ASSERT_THAT(workers, SizeIs(1));
  kill(workers[0], SIGSTOP);
  api.Cancel(job);
  EXPECT_EQ(api.WaitFor(job, v1::JOB_STATE_CANCELLED).state(), v1::JOB_STATE_CANCELLED);
  ExpectWholeLog(ReadEvents(daemon_, job), job);
  ExpectIdle();
}

TEST_F(ShortGraceTest, ADataFolderThatIsNotThereIsWorthAWarning) {
  EXPECT_THAT(daemon_.Log(), HasSubstr("data folder /no/such/folder does not exist"));
}

TEST_F(FirstJobTest, AWatcherThatDoesNotReadHoldsNothingUp) {
  Api api(daemon_);
  const std::string job = api.Create(SmallJob({.epochs = 500, .report_every_steps = 1})).name();
  const auto sleeper = cli_.Start({"watch", job, "-o", "json"});
  ASSERT_TRUE(WaitUntil([&] { return !sleeper->Out().empty(); }));
  sleeper->Signal(SIGSTOP);
  EXPECT_EQ(api.WaitFor(job, v1::JOB_STATE_SUCCEEDED).state(), v1::JOB_STATE_SUCCEEDED);
  sleeper->Signal(SIGCONT);
  const CliResult result = sleeper->Finish();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::ranges::count(result.out, '\n'), api.Get(job).last_sequence());
}

TEST_F(FirstJobTest, AWorkerThatDiedWhileNoDaemonRanFailsItsJob) {
  Api api(daemon_);
  const std::string job = api.CreateAndAwait(WithoutRestarts(LongJob(1000000)), v1::JOB_STATE_RUNNING);
  const std::vector<pid_t> workers = daemon_.Workers();
  ASSERT_THAT(workers, SizeIs(1));
  daemon_.Kill();
  kill(workers[0], SIGKILL);
  ASSERT_TRUE(daemon_.Start().ok()) << daemon_.Log();
  const v1::Job record = api.WaitFor(job, v1::JOB_STATE_FAILED);
  EXPECT_EQ(record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(record.reason(), v1::STATE_REASON_WORKER_LOST);
  ExpectWholeLog(ReadEvents(daemon_, job), job);
  ExpectIdle();
}

TEST_F(FirstJobTest, ShutdownCanTakeTheJobsAlong) {
  Api api(daemon_);
  const std::string job = api.CreateAndAwait(LongJob(1000000), v1::JOB_STATE_RUNNING);
  const CliResult result = cli_.Run({"shutdown", "--cancel-jobs"});
  EXPECT_EQ(result.exit_code, 0) << result;
  EXPECT_EQ(daemon_.Wait(absl::Seconds(30)), 0) << daemon_.Log();
  EXPECT_THAT(daemon_.Processes(), IsEmpty());
  ASSERT_TRUE(daemon_.Start().ok()) << daemon_.Log();
  EXPECT_EQ(api.Get(job).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(api.Get(job).reason(), v1::STATE_REASON_SHUTDOWN);
}

TEST_F(FirstJobTest, ShutdownAloneLeavesTheJobs) {
  Api api(daemon_);
  const std::string job = api.Create(LongJob(300)).name();
  api.WaitFor(job, v1::JOB_STATE_RUNNING);
  const CliResult result = cli_.Run({"shutdown"});
  EXPECT_EQ(result.exit_code, 0) << result;
  EXPECT_EQ(daemon_.Wait(absl::Seconds(30)), 0) << daemon_.Log();
  ASSERT_TRUE(daemon_.Start().ok()) << daemon_.Log();
  EXPECT_EQ(api.WaitFor(job, v1::JOB_STATE_SUCCEEDED).state(), v1::JOB_STATE_SUCCEEDED);
}

}  // namespace
}  // namespace tandem::testing
