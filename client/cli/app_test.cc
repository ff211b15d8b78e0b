#include "client/cli/app.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/app_fixture.h"
#include "client/cli/fake_terminal.h"
#include "client/lib/fake_daemon.h"
#include "client/lib/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using AppTest = AppFixture;

TEST_F(AppTest, ExitCodesTellHowTheJobEnded) {
  const std::string file = Write("job.yaml", "name: lenet\n");
  for (const auto& [state, code] : std::vector<std::pair<v1::JobState, int>>{
           {v1::JOB_STATE_SUCCEEDED, 0}, {v1::JOB_STATE_FAILED, 1}, {v1::JOB_STATE_CANCELLED, 3}}) {
    TellOf(state);
    EXPECT_EQ(Run({"submit", file, "--follow"}), code) << terminal_.err();
    EXPECT_EQ(Run({"watch", "lenet-1"}), code) << terminal_.err();
  }
  EXPECT_THAT(terminal_.out(), HasSubstr("submitted lenet-1\nrunning\n"));
  // A line for each break.
  EXPECT_THAT(terminal_.err(), StartsWith("connection lost; reconnecting\nconnection lost; reconnecting\n"));
}

TEST_F(AppTest, FollowingAsJsonIsOneEventALine) {
  TellOf(v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(Run({"submit", Write("job.yaml", "name: lenet\n"), "--follow", "-o", "json"}), 0);
  EXPECT_THAT(terminal_.out(),
              StartsWith("{\"job\":\"jobs/lenet-1\",\"sequence\":\"1\",\"state_change\":{\"to\":"
                         "\"JOB_STATE_RUNNING\"}}\n{\"job\""));
  EXPECT_EQ(std::count(terminal_.out().begin(), terminal_.out().end(), '\n'), 3);
}

TEST_F(AppTest, CtrlCDetachesAndSaysHowToComeBack) {
  TellOf(v1::JOB_STATE_SUCCEEDED);
  daemon_.watch_job = [](const v1::WatchJobRequest&, grpc::ServerContext* context,
                         grpc::ServerWriter<v1::JobEvent>* writer) -> grpc::Status {
    v1::JobEvent event;
    event.set_sequence(1);
    event.mutable_state_change()->set_to(v1::JOB_STATE_RUNNING);
    writer->Write(event);
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  terminal_.interrupt = [](const std::string& out) { return absl::StrContains(out, "running"); };
  EXPECT_EQ(Run({"submit", Write("job.yaml", "name: lenet\n"), "--follow"}), 130);
  EXPECT_EQ(terminal_.err(),
            "detached; the job continues\n  follow it again with: tandem watch lenet-1\n  cancel it with: "
            "tandem cancel "
            "lenet-1\n");
}

TEST_F(AppTest, LosingTheDaemonForGoodIsCode4) {
  TellOf(v1::JOB_STATE_SUCCEEDED);
  daemon_.watch_job = [](const v1::WatchJobRequest&, grpc::ServerContext*,
                         grpc::ServerWriter<v1::JobEvent>*) -> grpc::Status {
    return {grpc::StatusCode::UNAVAILABLE, "the daemon is shutting down"};
  };
  EXPECT_EQ(Run({"watch", "lenet-1", "--reconnect-timeout", "0.3"}), 4);
  EXPECT_THAT(terminal_.err(), HasSubstr("the daemon is shutting down"));
  EXPECT_THAT(terminal_.err(), HasSubstr("Follow it again with: tandem watch lenet-1 --after 0\n"));
}

TEST_F(AppTest, NobodyListens) {
  {
    client::FakeDaemon gone;
    terminal_.environment["TANDEM_ADDRESS"] = gone.address();
  }
  EXPECT_EQ(Run({"list"}), 4);
  EXPECT_THAT(terminal_.err(), StartsWith(absl::StrCat("tandem: no daemon answers at ",
                                                       terminal_.environment["TANDEM_ADDRESS"], ": ")));
  EXPECT_THAT(terminal_.err(), HasSubstr("Start one with `tandemd`, or name its address with --address"));
}

TEST_F(AppTest, TheDaemonOnThisMachineIsFoundByItsFiles) {
  terminal_.environment.erase("TANDEM_ADDRESS");
  daemon_.token = "secret";
  Write("tandem/address", daemon_.address() + "\n");
  Write("tandem/token", "secret\n");
  EXPECT_EQ(Run({"list"}), 0) << terminal_.err();
  Write("other/address", daemon_.address());
  Write("other/token", "wrong");
  EXPECT_EQ(Run({"list", "--state-folder", folder_ + "/other"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("does not accept the token in " + folder_ + "/other/token"));
}

TEST_F(AppTest, TokenFilesThatDoNotServe) {
  daemon_.token = "secret";
  EXPECT_EQ(Run({"list"}), 2);
  EXPECT_THAT(terminal_.err(),
              HasSubstr("needs its token: cannot read " + folder_ + "/tandem/token: No such file"));
  EXPECT_THAT(terminal_.err(), HasSubstr("--token-file"));
  EXPECT_EQ(Run({"list", "--token-file", "/no/token"}), 2);
  EXPECT_THAT(terminal_.err(),
              HasSubstr("tandem: cannot use the token file: cannot read /no/token: No such file"));
  EXPECT_EQ(Run({"list", "--token-file", Write("bad", "two words")}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("it has spaces or control characters"));
  EXPECT_EQ(Run({"list", "--token-file", Write("old", "revoked")}), 2);
  EXPECT_THAT(terminal_.err(),
              HasSubstr("An administrator makes a new token with `tandem tokens create USER`.\n"));
}

TEST_F(AppTest, AnotherMachineNeedsTls) {
  const std::string token = Write("token", "secret");
  EXPECT_EQ(Run({"--address", "10.9.8.7:7447", "--token-file", token, "list"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("the token would travel unencrypted"));
}

TEST_F(AppTest, EveryFieldAtFaultHasItsLine) {
  daemon_.create_job = [](const v1::CreateJobRequest&, v1::Job*) {
    return client::BadRequestStatus("2 fields",
                                    {{"spec.model.layers[1].dense.units", "must be at least 1, not 0"},
                                     {"spec.training.epochs", "must be given"}});
  };
  const std::string file = Write("job.yaml", "model:\n  layers:\n  - flatten\n  - dense: {units: 0}\n");
  for (const char* command : {"submit", "validate"}) {
    FakeTerminal before = terminal_;
    EXPECT_EQ(Run({command, file}), 2);
    EXPECT_THAT(terminal_.err(),
                HasSubstr(file + ":4:13: model.layers[1].dense.units: must be at least 1, not 0\n" + file +
                          ": training.epochs: must be given\n"));
  }
}

// A job that this daemon cannot run has a place in the file, too.
TEST_F(AppTest, WhatCanNeverRunHasItsLine) {
  daemon_.create_job = [](const v1::CreateJobRequest&, v1::Job*) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION,
                        "spec.replicas.count: needs CPU devices for 64 replicas, but this daemon has 2");
  };
  const std::string path = Write("job.yaml", "name: lenet\nreplicas:\n  count: 64\n");
  EXPECT_EQ(Run({"submit", path}), 2);
  EXPECT_EQ(terminal_.err(),
            path + ":3:3: replicas.count: needs CPU devices for 64 replicas, but this daemon has 2\n");
}

TEST_F(AppTest, AFieldAtFaultThatWasOverriddenIsNoPlaceInTheFile) {
  daemon_.create_job = [](const v1::CreateJobRequest&, v1::Job*) {
    return client::BadRequestStatus("1 field", {{"spec.model.input.shape", "must be given"},
                                                {"spec.training.epochs", "is -1; it must be at least 1"}});
  };
  const std::string file = Write("job.yaml", "training: {epochs: 3}\n");
  EXPECT_EQ(Run({"submit", file, "--set", "training.epochs=-1", "--set", "model.input.shap=1"}), 2);
  EXPECT_EQ(Run({"submit", file, "--set", "training.epochs=-1", "--set", "model.input={}"}), 2);
  EXPECT_EQ(
      terminal_.err(),
      "--set: model.input.shap: unknown field; did you mean `shape`?\n"
      "--set: model.input.shape: must be given\n--set: training.epochs: is -1; it must be at least 1\n");
}

TEST_F(AppTest, FilesThatAreNoJobs) {
  EXPECT_EQ(Run({"submit", Write("job.yaml", "nam: x\n")}), 2);
  EXPECT_EQ(terminal_.err(), folder_ + "/job.yaml:1:1: nam: unknown field; did you mean `name`?\n");
  EXPECT_EQ(Run({"submit", "/no/job.yaml"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("cannot read /no/job.yaml: No such file or directory\n"));
  EXPECT_EQ(Run({"submit", Write("job.yaml", "name: x\n"), "--set", "training.epoch=1"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("--set: training.epoch: unknown field; did you mean `epochs`?\n"));
}

TEST_F(AppTest, OverridesReachTheDaemon) {
  daemon_.create_job = [](const v1::CreateJobRequest& request, v1::Job* job) -> grpc::Status {
    if (request.spec().training().epochs() != 7 ||
        request.spec().model().layers(0).conv2d().kernel_size() != 2 || request.request_id() != "again" ||
        request.validate_only()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, request.DebugString()};
    }
    *job = Job("jobs/lenet-1", v1::JOB_STATE_QUEUED);
    return grpc::Status::OK;
  };
  const std::string file = Write("job.yaml", "model: {layers: [{conv2d: {kernel: 5}}]}\n");
  EXPECT_EQ(Run({"submit", "--set", "training.epochs=7", "--set", "model.layers[0].conv2d.kernel=[3, 3]",
                 file, "--request-id", "again"}),
            0)
      << terminal_.err();
  EXPECT_EQ(terminal_.out(), "submitted lenet-1\nfollow it with: tandem watch lenet-1\n");
}

TEST_F(AppTest, BadUsageIsCode2AndSaysWhatWasMeant) {
  struct Case {
    std::vector<std::string> arguments;
    const char* message;
  };
  for (const Case& c : std::vector<Case>{
           {{"sumbit", "x"}, "tandem: unknown command `sumbit`; did you mean `submit`?\n"},
           {{"list", "--limt", "3"}, "tandem list: no such option: `--limt`; did you mean `--limit`?\n"},
           {{"datasets", "add", "x", "--uplod"},
            "tandem datasets add: no such option: `--uplod`; did you mean `--upload`?\n`tandem datasets add "
            "--help`"},
           {{"submit"}, "tandem submit: FILE is required\n"},
           {{"list", "--limit", "-3"}, "tandem list: --limit: Value -3 not in range 0 to 1000000\n"},
           {{"list", "-o", "xml"}, "--output: want table, wide, json or yaml, got `xml`\n"},
           {{"list", "--timeout", "soon"},
            "--timeout: want seconds or a duration such as 30s or 2m, got `soon`\n"},
           {{"list", "--state", "runing"}, "--state: unknown state `runing`; did you mean `running`?\n"},
           {{"list", "--address", "nowhere"},
            "cannot connect to `nowhere`: it is not an address; give HOST:PORT, such as 127.0.0.1:7447\n"},
           {{"describe", "a b"},
            "cannot find the job `a b`: it is not a job's name; `tandem list` shows the jobs\n"},
           {{"init", "lent"}, "unknown template `lent`; did you mean `lenet`?\n"},
           {{"watch", "--plot"}, "cannot plot all jobs: --plot draws the curves of one job; give JOB\n"},
       }) {
    FakeTerminal terminal = terminal_;
    EXPECT_EQ(RunCommand(c.arguments, terminal), 2) << c.message;
    EXPECT_THAT(terminal.err(), HasSubstr(c.message));
  }
  EXPECT_EQ(Run({}), 2);
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_EQ(Run({"submit", "--help"}), 0);
  EXPECT_EQ(Run({"--version"}), 0);
}

TEST_F(AppTest, JobsArePausedAndResumed) {
  daemon_.pause_job = [](const v1::PauseJobRequest& request, v1::Job* job) {
    *job = Job(request.name(), v1::JOB_STATE_PAUSING);
    return grpc::Status::OK;
  };
  daemon_.resume_job = [](const v1::ResumeJobRequest& request, v1::Job* job) {
    *job = Job(request.name(), v1::JOB_STATE_QUEUED);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"pause", "lenet-1"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), "lenet-1 pausing\n");
  EXPECT_EQ(Run({"resume", "lenet-1"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("lenet-1 queued\n"));
}

TEST_F(AppTest, ListCountsTheTimeOfAllAttemptsAndNoPauses) {
  daemon_.list_jobs = [this](const v1::ListJobsRequest&, v1::ListJobsResponse* response) {
    for (const auto& [name, state] :
         {std::pair("jobs/over", v1::JOB_STATE_SUCCEEDED), std::pair("jobs/paused", v1::JOB_STATE_PAUSED),
          std::pair("jobs/again", v1::JOB_STATE_RUNNING),
          std::pair("jobs/gives", v1::JOB_STATE_PREEMPTING)}) {
      v1::Job& job = *response->add_jobs() = Job(name, state);
      job.set_run_seconds(20);
      job.mutable_start_time()->set_seconds(absl::ToUnixSeconds(terminal_.Now()) - 3600);
      job.mutable_lease_time()->set_seconds(absl::ToUnixSeconds(terminal_.Now()) - 5);
    }
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"list"}), 0);
  EXPECT_EQ(terminal_.out(),
            "JOB     USER  STATE       EPOCHS  VALIDATION    TIME    AGE\n"
            "over    ann   succeeded      0/3           -  20.0 s  1 min\n"
            "paused  ann   paused         0/3           -  20.0 s  1 min\n"
            "again   ann   running        0/3           -  25.0 s  1 min\n"
            "gives   ann   preempting     0/3           -  25.0 s  1 min\n");
}

TEST_F(AppTest, ListShowsATableOrJson) {
  EXPECT_EQ(Run({"list"}), 0);
  EXPECT_EQ(terminal_.out(),
            "JOB      USER  STATE      EPOCHS  VALIDATION  TIME    AGE\n"
            "lenet-1  ann   succeeded     0/3           -     -  1 min\n"
            "mlp-1a   ann   running       0/3  mae 0.2500     -  1 min\n"
            "mlp-1b   ann   queued        0/3           -     -  1 min\n");
  EXPECT_EQ(terminal_.err(), "");
  FakeTerminal json = terminal_;
  EXPECT_EQ(RunCommand({"-o", "json", "list"}, json), 0);
  EXPECT_THAT(json.out(), HasSubstr("[\n{\"name\":\"jobs/lenet-1\","));
  EXPECT_EQ(Run({"list", "-o", "wide"}), 0);
  EXPECT_EQ(Run({"list", "-o", "yaml"}), 0);
  EXPECT_THAT(terminal_.out(), HasSubstr("- name: jobs/lenet-1\n  spec:"));
}

TEST_F(AppTest, DevicesShowWhatAGpuIsAndHowItIs) {
  daemon_.list_devices = [](v1::ListDevicesResponse* response) {
    v1::Device& cpu = *response->add_devices();
    cpu.set_name("devices/cpu:0");
    cpu.set_kind(v1::DEVICE_KIND_CPU);
    cpu.set_model("A CPU");
    cpu.set_memory_bytes(8'000'000'000);
    cpu.set_threads(2);
    v1::Device& gpu = *response->add_devices();
    gpu.set_name("devices/gpu:0");
    gpu.set_kind(v1::DEVICE_KIND_GPU);
    gpu.set_model("NVIDIA H200");
    gpu.set_memory_bytes(148'600'000'000);
    gpu.add_jobs("jobs/lenet-1");
    gpu.mutable_gpu()->set_uuid("GPU-8932f937");
    gpu.mutable_gpu()->set_utilization_percent(37);
    gpu.mutable_gpu()->set_used_memory_bytes(2'000'000'000);
    gpu.mutable_gpu()->set_temperature_celsius(41);
    gpu.mutable_gpu()->set_power_watts(126.5);
    return grpc::Status::OK;
  };
  FakeTerminal wide = terminal_;
  FakeTerminal json = terminal_;
  EXPECT_EQ(Run({"devices"}), 0) << terminal_.err();
  EXPECT_EQ("\n" + terminal_.out(), R"(
DEVICE  KIND  MODEL          MEMORY  THREADS  JOB
cpu:0   cpu   A CPU          8.0 GB        2  free
gpu:0   gpu   NVIDIA H200  148.6 GB        -  lenet-1
)");
  EXPECT_EQ(RunCommand({"devices", "-o", "wide"}, wide), 0);
  EXPECT_THAT(wide.out(), HasSubstr("BUSY  FILLED  TEMP  POWER  ECC  UUID          MESSAGE\n"));
  EXPECT_THAT(wide.out(), HasSubstr(" -       -     -      -    -  -             -\n"));
  EXPECT_THAT(wide.out(), HasSubstr(" 37%  2.0 GB  41 C  127 W    -  GPU-8932f937  -\n"));
  EXPECT_EQ(RunCommand({"devices", "-o", "json"}, json), 0);
  EXPECT_THAT(json.out(), HasSubstr("\"utilization_percent\": 37"));
}

TEST_F(AppTest, ListSaysThatThereAreMore) {
  EXPECT_EQ(Run({"list", "--limit", "2"}), 0);
  EXPECT_THAT(terminal_.out(), ::testing::Not(HasSubstr("mlp-1b")));
  EXPECT_EQ(terminal_.err(), "... the first 2; --all shows more\n");
  FakeTerminal all;
  all.environment = terminal_.environment;
  EXPECT_EQ(RunCommand({"list", "--limit", "2", "--all"}, all), 0);
  EXPECT_THAT(all.out(), HasSubstr("mlp-1b"));
}

TEST_F(AppTest, DescribeAsYamlCanBeSubmittedAgain) {
  EXPECT_EQ(Run({"describe", "lenet-1", "-o", "yaml"}), 0);
  EXPECT_EQ(terminal_.out(), "# jobs/lenet-1: succeeded\nname: lenet\ntraining: {epochs: 3}\n");
  const absl::StatusOr<client::JobFile> file = client::ParseJobFile(terminal_.out(), "standard input");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->spec.training().epochs(), 3);
}

TEST_F(AppTest, WatchWithoutAJobTellsOfAllAndEndsWellWithCtrlC) {
  std::atomic<bool> resumed = false;
  daemon_.watch_jobs = [&resumed](const v1::WatchJobsRequest& request, grpc::ServerContext* context,
                                  grpc::ServerWriter<v1::WatchJobsResponse>* writer) -> grpc::Status {
    if (request.after_cursor() == -1) {
      v1::WatchJobsResponse change;
      change.set_cursor(12);
      change.set_job("jobs/lenet-1");
      change.mutable_time()->set_seconds(1'000'000);
      change.mutable_state_change()->set_to(v1::JOB_STATE_RUNNING);
      writer->Write(change);
      return {grpc::StatusCode::UNAVAILABLE, "going"};
    }
    if (request.after_cursor() != 12) return {grpc::StatusCode::OUT_OF_RANGE, "wrong cursor"};
    resumed = true;
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  terminal_.interrupt = [&resumed](const std::string&) { return resumed.load(); };
  EXPECT_EQ(Run({"watch"}), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), "1970-01-12 13:46:40  lenet-1  running\n");
}

TEST_F(AppTest, LogsOfAQueuedJobSayWhyItWaits) {
  daemon_.get_job = [&](const v1::GetJobRequest& request, v1::Job* job) {
    *job = Job(request.name(), v1::JOB_STATE_QUEUED);
    job->mutable_waiting()->set_message("Needs 2 CPUs; 1 of 2 free.");
    return grpc::Status::OK;
  };
  daemon_.read_log = [](const v1::ReadLogRequest&, grpc::ServerWriter<v1::ReadLogResponse>*) {
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"logs", "lenet-1"}), 0);
  EXPECT_EQ(terminal_.out(), "");
  EXPECT_EQ(terminal_.err(), "lenet-1 waits: Needs 2 CPUs; 1 of 2 free.\n");
}

TEST_F(AppTest, FollowingAQueuedJobSaysWhyItWaitsAsTheQueueDoes) {
  std::atomic<bool> looked = false;
  daemon_.create_job = [](const v1::CreateJobRequest&, v1::Job* job) {
    *job = Job("jobs/lenet-1", v1::JOB_STATE_QUEUED);
    return grpc::Status::OK;
  };
  daemon_.watch_job = [&looked](const v1::WatchJobRequest&, grpc::ServerContext*,
                                grpc::ServerWriter<v1::JobEvent>* writer) {
    v1::JobEvent event;
    event.set_job("jobs/lenet-1");
    event.set_sequence(1);
    event.mutable_state_change()->set_to(v1::JOB_STATE_QUEUED);
    writer->Write(event);
    while (!looked) absl::SleepFor(absl::Milliseconds(1));
    event.set_sequence(2);
    event.set_terminal(true);
    event.mutable_state_change()->set_to(v1::JOB_STATE_CANCELLED);
    writer->Write(event);
    return grpc::Status::OK;
  };
  v1::Waiting waiting;
  waiting.set_position(2);
  waiting.set_message("Needs 2 CPUs; 1 of 2 free.");
  waiting.mutable_estimated_start_time()->set_seconds(1'000'000 + 300);
  daemon_.get_job = [&](const v1::GetJobRequest&, v1::Job* job) {
    *job = Job("jobs/lenet-1", v1::JOB_STATE_QUEUED);
    *job->mutable_waiting() = waiting;
    looked = true;
    return grpc::Status::OK;
  };
  daemon_.list_queue = [&](v1::ListQueueResponse* response) {
    v1::QueuedJob* job = response->add_jobs();
    job->set_job("jobs/lenet-1");
    *job->mutable_waiting() = waiting;
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"submit", Write("job.yaml", "name: lenet\n"), "--follow"}), 3) << terminal_.err();
  EXPECT_THAT(terminal_.out(),
              HasSubstr("waits: #2 in the queue, starts in ~5 min or later: Needs 2 CPUs; 1 of 2 free.\n"));
  FakeTerminal queue;
  queue.environment = terminal_.environment;
  EXPECT_EQ(RunCommand({"queue"}, queue), 0) << queue.err();
  EXPECT_THAT(queue.out(), HasSubstr("~5 min or later  Needs 2 CPUs; 1 of 2 free."));
  // Programs get only the events.
  looked = true;
  FakeTerminal json;
  json.environment = terminal_.environment;
  EXPECT_EQ(RunCommand({"watch", "lenet-1", "-o", "json"}, json), 3);
  EXPECT_THAT(json.out(), Not(HasSubstr("in the queue")));
}

TEST_F(AppTest, ControlCharactersOfTheDaemonsAreWrittenOut) {
  daemon_.list_jobs = [](const v1::ListJobsRequest&, v1::ListJobsResponse* response) {
    v1::Job& job = *response->add_jobs();
    job = Job("jobs/lenet-1", v1::JOB_STATE_FAILED);
    job.set_message(
        "its log: \x1b]0;owned\x07\xc2\x9b"
        "2J \xc3\xa9");
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"list", "-o", "wide"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("its log: \\x1b]0;owned\\x07\\x9b2J \xc3\xa9"));
  daemon_.list_jobs = [](const v1::ListJobsRequest&, v1::ListJobsResponse*) -> grpc::Status {
    return {grpc::StatusCode::INVALID_ARGUMENT, "no \x1b[2J such"};
  };
  EXPECT_EQ(Run({"list"}), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("no \\x1b[2J such"));
}

// A worker's last message is its job's message.
TEST_F(AppTest, NoMessagePassesForALineOfItsOwn) {
  const std::string message = "lost\nlenet-2  succeeded";
  daemon_.list_jobs = [&](const v1::ListJobsRequest&, v1::ListJobsResponse* response) {
    v1::Job& job = *response->add_jobs();
    job = Job("jobs/lenet-1", v1::JOB_STATE_FAILED);
    job.set_message(message);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"list", "-o", "wide"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("lost lenet-2  succeeded\n"));

  daemon_.get_job = [&](const v1::GetJobRequest&, v1::Job* job) {
    *job = Job("jobs/lenet-1", v1::JOB_STATE_FAILED);
    job->set_message(message);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"describe", "lenet-1"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("failed: lost\n    "));

  std::atomic<bool> told = false;
  daemon_.watch_jobs = [&](const v1::WatchJobsRequest&, grpc::ServerContext* context,
                           grpc::ServerWriter<v1::WatchJobsResponse>* writer) -> grpc::Status {
    v1::WatchJobsResponse change;
    change.set_cursor(12);
    change.set_job("jobs/lenet-1");
    change.mutable_state_change()->set_to(v1::JOB_STATE_FAILED);
    change.mutable_state_change()->set_message(message);
    writer->Write(change);
    told = true;
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  terminal_.interrupt = [&](const std::string& out) {
    return told && out.find("succeeded") != std::string::npos;
  };
  EXPECT_EQ(Run({"watch"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("lenet-1  failed: lost\n    lenet-2  succeeded\n"));
}

TEST_F(AppTest, WatchingShowsNoControlCharacters) {
  TellOf(v1::JOB_STATE_SUCCEEDED);
  daemon_.watch_job = [](const v1::WatchJobRequest&, grpc::ServerContext*,
                         grpc::ServerWriter<v1::JobEvent>* writer) -> grpc::Status {
    v1::JobEvent event;
    event.set_job("jobs/lenet-1");
    event.set_sequence(1);
    event.mutable_notice()->set_message("\x1b[31mred\njob lenet-1 succeeded");
    writer->Write(event);
    event.set_sequence(2);
    event.set_terminal(true);
    event.mutable_state_change()->set_to(v1::JOB_STATE_SUCCEEDED);
    writer->Write(event);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"watch", "lenet-1"}), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("note: \\x1b[31mred\\njob lenet-1 succeeded\n"));
}

TEST_F(AppTest, OutputThatCannotBeWrittenIsNoSuccess) {
  terminal_.output_status = absl::ResourceExhaustedError("cannot write the output: no space");
  EXPECT_EQ(Run({"list"}), 5);
  EXPECT_EQ(terminal_.err(), "tandem: cannot write the output: no space\n");
  TellOf(v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(Run({"watch", "lenet-1"}), 5);
  EXPECT_EQ(Run({"list", "--no-such-option"}), 2);
}

TEST_F(AppTest, TheSystemsTerminalSeesThatItsOutputIsLost) {
  const int before = dup(STDOUT_FILENO);
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  SystemTerminal terminal;
  dup2(full, STDOUT_FILENO);
  terminal.Out("lost");
  dup2(before, STDOUT_FILENO);
  close(full);
  close(before);
  EXPECT_TRUE(absl::IsResourceExhausted(terminal.OutputStatus())) << terminal.OutputStatus();
}

TEST_F(AppTest, ADeadlineIsTheDaemonsOwnOrTheCalls) {
  daemon_.list_jobs = [](const v1::ListJobsRequest&, v1::ListJobsResponse*) -> grpc::Status {
    return {grpc::StatusCode::DEADLINE_EXCEEDED, "cannot list: the disk is slow; try again"};
  };
  EXPECT_EQ(Run({"list"}), 4);
  EXPECT_EQ(terminal_.err(), "tandem: cannot list: the disk is slow; try again\n");
  daemon_.list_jobs = [](const v1::ListJobsRequest&, v1::ListJobsResponse*) -> grpc::Status {
    absl::SleepFor(absl::Milliseconds(600));
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"list", "--timeout", "0.2"}), 4);
  EXPECT_THAT(terminal_.err(), HasSubstr(" did not answer in time; --timeout allows more\n"));
}

TEST_F(AppTest, ASubmissionThatMayHaveArrivedSaysHowToRepeatIt) {
  const std::string file = Write("job.yaml", "name: lenet\n");
  for (const grpc::StatusCode code : {grpc::StatusCode::DEADLINE_EXCEEDED, grpc::StatusCode::UNAVAILABLE}) {
    std::string id;
    daemon_.create_job = [&](const v1::CreateJobRequest& request, v1::Job*) -> grpc::Status {
      id = request.request_id();
      return {code, "Socket closed"};
    };
    EXPECT_EQ(Run({"submit", file}), 4);
    EXPECT_THAT(terminal_.err(), HasSubstr("--request-id " + id + ":"));
  }
  daemon_.create_job = [&](const v1::CreateJobRequest&, v1::Job*) -> grpc::Status {
    return {grpc::StatusCode::INVALID_ARGUMENT, "no"};
  };
  const size_t said = terminal_.err().size();
  EXPECT_EQ(Run({"submit", file}), 2);
  EXPECT_EQ(terminal_.err().find("--request-id", said), std::string::npos);
}

}  // namespace
}  // namespace tandem::cli
