#include "server/workers/supervisor.h"

#include <grpcpp/create_channel.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/env.h"
#include "server/store/records.h"
#include "server/workers/job_folder.h"
#include "server/workers/kept_weights.h"
#include "server/workers/socket_path.h"
#include "server/workers/testing/supervisor_fixture.h"
#include "server/workers/worker_lock.h"
#include "server/workers/worker_process.h"
#include "server/workers/worker_protocol.h"
#include "tandem/internal/v1/worker.grpc.pb.h"

namespace tandem {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(60);

using SupervisorTest = SupervisorFixture;

TEST_F(SupervisorTest, AWorkerReportsAndEnds) {
  const std::string id = daemon_->Run("succeed");
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED) << job.DebugString();
  EXPECT_EQ(daemon_->Notices(id), std::vector<std::string>{"1"});
  EXPECT_EQ(daemon_->released(), std::vector<std::string>{id + "/1"});
  EXPECT_FALSE(std::filesystem::exists(JobFolder(job.folder()).SpoolPath(1)));
  EXPECT_TRUE(daemon_->supervisor().WaitUntilIdle(kDeadline));
}

TEST_F(SupervisorTest, AFloodIsTakenInOrder) {
  const std::string id = daemon_->Run("flood");
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_SUCCEEDED);
  const std::vector<std::string> notices = daemon_->Notices(id);
  ASSERT_EQ(notices.size(), 20000);
  for (int i = 0; i < notices.size(); ++i) ASSERT_EQ(notices[i], std::to_string(i + 1));
}

TEST_F(SupervisorTest, RepeatedEventsChangeNothing) {
  const std::string id = daemon_->Run("repeat");
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(daemon_->Notices(id), std::vector<std::string>{"1"});
}

TEST_F(SupervisorTest, AWorkerWhoseEventsCannotBeTakenFailsItsJob) {
  const std::string id = daemon_->Run("unknown");
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_TRUE(absl::StrContains(job.message(), "dismissed")) << job.message();
}

TEST_F(SupervisorTest, EventsInTheSpoolOfADeadWorkerCount) {
  const std::string id = daemon_->Run("unreported");
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(daemon_->Notices(id), std::vector<std::string>{"1"});
}

TEST_F(SupervisorTest, ACrashIsNamedAfterTheEventsBeforeIt) {
  const std::string id = daemon_->Run("crash");
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_TRUE(absl::StrContains(job.message(), "SIGABRT")) << job.message();
  EXPECT_TRUE(absl::StrContains(job.message(), "of its log: why it crashed. Its stack is in "))
      << job.message();
  EXPECT_TRUE(absl::StrContains(job.message(), "/crash-attempt-1.txt.")) << job.message();
  EXPECT_EQ(daemon_->Notices(id), std::vector<std::string>{"1"});
  EXPECT_EQ(daemon_->released().back(), absl::StrCat(id, "/1 crashed"));
}

TEST_F(SupervisorTest, AFailureOfAGpuCountsAsACrash) {
  const std::string id = daemon_->Run("device");
  // Its events tell how the job ended.
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(daemon_->released().back(), absl::StrCat(id, "/1 crashed"));
}

TEST_F(SupervisorTest, AnExitCodeAndTheLastLogLineAreNamed) {
  const v1::Job job = daemon_->WaitForEnd(daemon_->Run("exit"));
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_TRUE(absl::StrContains(job.message(), "code 7")) << job.message();
  EXPECT_TRUE(absl::StrContains(job.message(), "the last words")) << job.message();
}

TEST_F(SupervisorTest, AWorkerWithoutRoomForItsEventsIsNotBlamed) {
  const v1::Job job = daemon_->WaitForEnd(daemon_->Run("no room"));
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_IO_ERROR);
  EXPECT_TRUE(absl::StrContains(job.message(), "No space left on device")) << job.message();
}

TEST_F(SupervisorTest, AKilledWorkerFailsItsJob) {
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  kill(daemon_->WorkerPid(id), SIGKILL);
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_TRUE(absl::StrContains(job.message(), "SIGKILL")) << job.message();
}

// The whole process hangs, so only silence reveals it.
TEST_F(SupervisorTest, AStoppedWorkerIsKilledAndItsJobTold) {
  silence_limit_ = absl::Seconds(1);
  Restart();
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  const pid_t pid = daemon_->WorkerPid(id);
  kill(pid, SIGSTOP);
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_TRUE(absl::StrContains(job.message(), "silent for more than 1s")) << job.message();
  EXPECT_TRUE(IsGone(pid));
  EXPECT_EQ(daemon_->released().back(), id + "/1");
}

TEST_F(SupervisorTest, AWorkerWithNothingToSayIsNotSilent) {
  silence_limit_ = absl::Seconds(4);
  Restart();
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  // It answers all the time.
  absl::SleepFor(2 * silence_limit_);
  EXPECT_EQ(daemon_->Get(id).state(), v1::JOB_STATE_RUNNING);
  daemon_->Cancel(id);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(SupervisorTest, NothingOfADeadJobSurvives) {
  const std::string id = daemon_->Run("parent");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  pid_t child = 0;
  std::ifstream(daemon_->Get(id).folder() + "/child") >> child;
  ASSERT_GT(child, 0);
  EXPECT_FALSE(IsGone(child));
  kill(daemon_->WorkerPid(id), SIGKILL);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_FAILED);
  EXPECT_TRUE(Eventually([&] { return IsGone(child); }));
  EXPECT_EQ(daemon_->WorkerPid(id), 0);
}

TEST_F(SupervisorTest, AProgramThatCannotBeRunFailsTheJob) {
  worker_program_ = state_folder_ + "/no such program";
  Restart();
  const v1::Job job = daemon_->WaitForEnd(daemon_->Run("succeed"));
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_WORKER_START_FAILED);
  EXPECT_TRUE(absl::StrContains(job.message(), "no such program")) << job.message();
}

TEST_F(SupervisorTest, ACancelledWorkerStops) {
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  daemon_->Cancel(id);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(SupervisorTest, APausedWorkerStopsAndTheNextAttemptRuns) {
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  daemon_->Pause(id);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_PAUSED);
  // The next daemon finds no worker to adopt.
  Restart();
  EXPECT_EQ(daemon_->Get(id).state(), v1::JOB_STATE_PAUSED);
  daemon_->Resume(id);
  daemon_->Start(daemon_->Schedule(id));
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  EXPECT_EQ(daemon_->Get(id).attempt(), 2);
  daemon_->Pause(id);
  daemon_->Cancel(id);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(SupervisorTest, APauseBeforeTheWorkerConnectsReachesIt) {
  const std::string id = daemon_->Run("wait");
  daemon_->Pause(id);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_PAUSED);
}

TEST_F(SupervisorTest, ACancelBeforeTheWorkerConnectsReachesIt) {
  const std::string id = daemon_->Run("wait");
  daemon_->Cancel(id);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_CANCELLED);
}

// It hangs before its first message, for example in a driver or a file system.
TEST_F(SupervisorTest, AWorkerThatNeverConnectsIsKilledAndItsJobTold) {
  silence_limit_ = absl::Milliseconds(500);
  connect_grace_ = absl::Milliseconds(500);
  Restart();
  const std::string id = daemon_->Run("unconnected");
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_TRUE(absl::StrContains(job.message(), "silent")) << job.message();
}

TEST_F(SupervisorTest, ACancelEndsAWorkerThatNeverConnects) {
  const std::string id = daemon_->Run("unconnected");
  daemon_->Cancel(id);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(SupervisorTest, AWorkerThatIgnoresItsCancelIsKilled) {
  const std::string id = daemon_->Run("stubborn");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  const pid_t pid = daemon_->WorkerPid(id);
  daemon_->Cancel(id);
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(IsGone(pid));
}

TEST_F(SupervisorTest, AWorkerThatStaysAfterItsJobIsKilled) {
  const std::string id = daemon_->Run("lingering");
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(daemon_->WorkerPid(id), 0);
}

TEST_F(SupervisorTest, ADeletedJobsFolderGoes) {
  const std::string id = daemon_->Run("succeed");
  const v1::Job job = daemon_->WaitForEnd(id);
  ASSERT_TRUE(std::filesystem::exists(job.folder()));
  daemon_->Delete(id);
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(job.folder()); }));
}

TEST_F(SupervisorTest, KeptWeightsGoWhenTheJobCannotBeginAnew) {
  std::filesystem::create_directory(state_folder_ + "/kept-weights");
  const auto run = [this](const std::string& behaviour) {
    const std::string id = daemon_->Create(behaviour);
    std::ofstream(KeptWeightsPath(daemon_->Get(id).folder())) << "weights";
    daemon_->Start(daemon_->Schedule(id));
    return daemon_->WaitForEnd(id);
  };
  const v1::Job failed = run("exit");
  ASSERT_EQ(failed.state(), v1::JOB_STATE_FAILED);
  const v1::Job succeeded = run("succeed");
  ASSERT_EQ(succeeded.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(KeptWeightsPath(succeeded.folder())); }));
  EXPECT_TRUE(std::filesystem::exists(succeeded.folder()));
  // The job may be resumed.
  EXPECT_TRUE(std::filesystem::exists(KeptWeightsPath(failed.folder())));
  daemon_->Delete(JobId(failed.name()));
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(KeptWeightsPath(failed.folder())); }));
}

TEST_F(SupervisorTest, TheSocketIsForTheUserAlone) {
  struct stat folder;
  ASSERT_EQ(stat((state_folder_ + "/workers").c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777, 0700);
}

TEST_F(SupervisorTest, ALongStateFolderWorksToo) {
  state_folder_ += "/" + std::string(120, 'x');
  std::filesystem::create_directories(state_folder_ + "/jobs");
  Restart();
  EXPECT_EQ(daemon_->WaitForEnd(daemon_->Run("succeed")).state(), v1::JOB_STATE_SUCCEEDED);
  const absl::StatusOr<std::string> socket = PrepareSocketPath(state_folder_);
  ASSERT_TRUE(socket.ok());
  EXPECT_FALSE(absl::StrContains(*socket, "xxx"));
  // The folder is removed with the daemon if no worker needs it.
  daemon_.reset();
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(*socket).parent_path()));
}

TEST_F(SupervisorTest, AWorkerOfAnotherAttemptIsDismissed) {
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  const v1::Job job = daemon_->Get(id);

  // The same launch with an older attempt number and its own lock, started like the daemon's workers.
  std::string text = ContentOrEmpty(JobFolder(job.folder()).LaunchPath(1));
  const size_t at = text.find("attempt: 1");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 10, "attempt: 7");
  const std::string folder = state_folder_ + "/stale";
  std::filesystem::create_directory(folder);
  const size_t folder_at = text.find("job_folder: \"");
  text.replace(folder_at, text.find('\n', folder_at) - folder_at,
               absl::StrCat("job_folder: \"", folder, "\""));
  std::ofstream(folder + "/launch") << text;
  absl::StatusOr<WorkerLock> lock = WorkerLock::Acquire(folder + "/worker.lock");
  ASSERT_TRUE(lock.ok());
  absl::StatusOr<std::unique_ptr<ProcessGroup>> process =
      StartWorker({.program = worker_program_,
                   .arguments = {"--launch", folder + "/launch", "--lock-fd", "3"},
                   .environment = {}},
                  folder + "/log", *lock);
  ASSERT_TRUE(process.ok()) << process.status();
  pollfd ended = {(*process)->pidfd(), POLLIN, 0};
  ASSERT_EQ(poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(kDeadline))), 1);
  EXPECT_EQ((*process)->Reap().exit_code, 5) << ContentOrEmpty(folder + "/log");
  EXPECT_EQ(daemon_->Get(id).state(), v1::JOB_STATE_RUNNING);
}

// All workers run as one account, and jobs' ids are no secret. A hijacked worker must not speak for another.
TEST_F(SupervisorTest, NobodySpeaksForAWorkerWhoseSecretTheyDoNotKnow) {
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  const pid_t worker = daemon_->WorkerPid(id);
  const absl::StatusOr<std::string> socket = PrepareSocketPath(state_folder_);
  ASSERT_TRUE(socket.ok());
  // The next daemon also knows the secret.
  for (const bool restarts : {false, true}) {
    if (restarts) Restart();
    for (const std::string& secret : {std::string(), std::string(64, '0')}) {
      for (const int protocol : {kWorkerProtocol, 99}) {
        const auto stub = internal::v1::WorkerService::NewStub(
            grpc::CreateChannel(UnixTarget(*socket), grpc::InsecureChannelCredentials()));
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
        context.set_wait_for_ready(true);
        const auto stream = stub->Connect(&context);
        internal::v1::ConnectRequest request;
        request.mutable_hello()->set_job_id(id);
        request.mutable_hello()->set_attempt(1);
        request.mutable_hello()->set_pid(worker);
        request.mutable_hello()->set_protocol(protocol);
        request.mutable_hello()->set_secret(secret);
        EXPECT_TRUE(stream->Write(request));
        request.Clear();
        request.add_events()->set_worker_sequence(1000);
        request.mutable_events(0)->mutable_finished()->set_state(v1::JOB_STATE_SUCCEEDED);
        stream->Write(request);
        internal::v1::ConnectResponse response;
        ASSERT_TRUE(stream->Read(&response));
        EXPECT_TRUE(response.has_dismissal()) << response.DebugString();
        EXPECT_FALSE(stream->Read(&response));
        stream->Finish();
        EXPECT_EQ(daemon_->Get(id).state(), v1::JOB_STATE_RUNNING);
        EXPECT_EQ(daemon_->WorkerPid(id), worker);
      }
    }
  }
  // The real worker is still connected, or reconnects after some time.
  daemon_->Pause(id);
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(job.message(), "as the test wants it");
}

TEST_F(SupervisorTest, AnEarlierHolderOfTheLockIsKilledForTheNextAttempt) {
  const std::string id = daemon_->Create("succeed");
  const v1::Job job = daemon_->Schedule(id);
  // A worker of an unknown attempt.
  std::filesystem::create_directory(job.folder());
  absl::StatusOr<std::unique_ptr<ProcessGroup>> process = absl::UnknownError("not started");
  {
    absl::StatusOr<WorkerLock> lock = WorkerLock::Acquire(JobFolder(job.folder()).LockPath());
    ASSERT_TRUE(lock.ok());
    process =
        StartWorker({.program = "/bin/sh",
                     .arguments = {"-c", "sleep 1000; :", "--launch", JobFolder(job.folder()).LaunchPath(0)},
                     .environment = {}},
                    job.folder() + "/log", *lock);
    ASSERT_TRUE(process.ok()) << process.status();
    ASSERT_TRUE(lock->SetHolder({.attempt = 0, .pid = (*process)->pid()}).ok());
  }
  daemon_->Start(job);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_TRUE(IsGone((*process)->pid()));
}

// A hijacked worker's compressed messages may inflate beyond the machine's memory.
TEST_F(SupervisorTest, CompressedMessagesAreRefused) {
  const absl::StatusOr<std::string> socket = PrepareSocketPath(state_folder_);
  ASSERT_TRUE(socket.ok());
  const auto stub = internal::v1::WorkerService::NewStub(
      grpc::CreateChannel(UnixTarget(*socket), grpc::InsecureChannelCredentials()));
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    context.set_compression_algorithm(algorithm);
    const auto stream = stub->Connect(&context);
    internal::v1::ConnectRequest request;
    request.mutable_hello()->set_job_id(std::string(10'000, 'x'));
    stream->Write(request);
    internal::v1::ConnectResponse response;
    EXPECT_FALSE(stream->Read(&response)) << response.DebugString();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  }
}

}  // namespace
}  // namespace tandem
