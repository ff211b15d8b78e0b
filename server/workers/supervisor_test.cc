#include "server/workers/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "gtest/gtest.h"
#include "server/events/event_hub.h"
#include "server/jobs/job_machine.h"
#include "server/store/records.h"
#include "server/store/store.h"
#include "server/workers/job_folder.h"
#include "server/workers/pending_result.h"
#include "server/workers/socket_path.h"
#include "server/workers/worker_lock.h"

namespace tandem {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(60);

// Tests look at what other processes do, so there is nothing to wait on but time.
bool Eventually(const std::function<bool()>& holds) {
  const absl::Time deadline = absl::Now() + kDeadline;
  while (!holds()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

// Neither running nor about to: a dead process that nobody has reaped yet counts as gone.
bool IsGone(pid_t pid) {
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string number, name, state;
  return !(stat >> number >> name >> state) || state == "Z" || state == "X";
}

// The daemon's rooms up to the supervisor, with the test as its scheduler.
class Daemon {
 public:
  Daemon(const std::string& state_folder, const std::string& worker_program, absl::Duration exit_grace) {
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(state_folder + "/tandem.db");
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    hub_ = std::make_unique<EventHub>(store_.get());
    jobs_ = std::make_unique<JobMachine>(store_.get(), hub_.get(), Clock::Real(), state_folder + "/jobs");
    WorkerSupervisor::Options options;
    options.worker_program = worker_program;
    options.state_folder = state_folder;
    options.resolve_dataset = [](const v1::DatasetSpec& dataset) { return dataset; };
    options.cancel_grace = absl::Milliseconds(300);
    options.exit_grace = exit_grace;
    options.kill_grace = absl::Milliseconds(100);
    absl::StatusOr<std::unique_ptr<WorkerSupervisor>> supervisor =
        WorkerSupervisor::Create(std::move(options), jobs_.get());
    EXPECT_TRUE(supervisor.ok()) << supervisor.status();
    supervisor_ = *std::move(supervisor);
    jobs_->AddObserver(supervisor_.get());
  }

  ~Daemon() {
    supervisor_->Stop();
    store_->Close();
  }

  void Begin() {
    absl::StatusOr<std::vector<v1::Job>> jobs = jobs_->NonTerminalJobs();
    ASSERT_TRUE(jobs.ok()) << jobs.status();
    std::erase_if(*jobs, [](const v1::Job& job) { return IsAtRest(job.state()); });
    for (const v1::Job& job : supervisor_->FindLingering()) jobs->push_back(job);
    const absl::Status begun =
        supervisor_->Begin(*jobs, [this](const std::string& id, int32_t attempt, bool crashed) {
          MutexLock lock(&mutex_);
          released_.push_back(absl::StrCat(id, "/", attempt, crashed ? " crashed" : ""));
        });
    ASSERT_TRUE(begun.ok()) << begun;
  }

  std::string Create(const std::string& behaviour) {
    JobMachine::NewJob job;
    job.spec.set_name(behaviour);
    const PendingResult<v1::Job> created;
    jobs_->Create(job, created.Callback());
    const absl::StatusOr<v1::Job> result = created.Wait();
    EXPECT_TRUE(result.ok()) << result.status();
    return JobId(result->name());
  }

  v1::Job Schedule(const std::string& id) {
    const PendingResult<v1::Job> scheduled;
    jobs_->Schedule(id, {"devices/cpu:0"}, scheduled.Callback());
    const absl::StatusOr<v1::Job> result = scheduled.Wait();
    EXPECT_TRUE(result.ok()) << result.status();
    return *result;
  }

  void Start(const v1::Job& job) {
    v1::Device device;
    device.set_name("devices/cpu:0");
    device.set_kind(v1::DEVICE_KIND_CPU);
    device.set_threads(1);
    supervisor_->Start(job, {device});
  }

  // Makes a job with this behaviour and starts its worker.
  std::string Run(const std::string& behaviour) {
    const std::string id = Create(behaviour);
    Start(Schedule(id));
    return id;
  }

  void Cancel(const std::string& id) {
    const PendingResult<v1::Job> cancelled;
    jobs_->Cancel(id, v1::STATE_REASON_CANCEL_REQUESTED, cancelled.Callback());
    EXPECT_TRUE(cancelled.Wait().ok());
  }

  void Pause(const std::string& id) {
    const PendingResult<v1::Job> paused;
    jobs_->Pause(id, paused.Callback());
    EXPECT_TRUE(paused.Wait().ok());
  }

  void Resume(const std::string& id) {
    const PendingResult<v1::Job> resumed;
    jobs_->Resume(id, /*max_queued_jobs=*/0, resumed.Callback());
    EXPECT_TRUE(resumed.Wait().ok());
  }

  void Delete(const std::string& id) {
    const PendingResult<int> deleted;
    jobs_->Delete(id, [done = deleted.Callback()](absl::Status status) mutable {
      done(status.ok() ? absl::StatusOr<int>(0) : absl::StatusOr<int>(status));
    });
    EXPECT_TRUE(deleted.Wait().ok());
  }

  v1::Job Get(const std::string& id) {
    const absl::StatusOr<v1::Job> job = jobs_->Get(id);
    EXPECT_TRUE(job.ok()) << job.status();
    return *job;
  }

  bool WaitForState(const std::string& id, v1::JobState state) {
    return Eventually([&] { return Get(id).state() == state || IsTerminal(Get(id).state()); }) &&
           Get(id).state() == state;
  }

  // Waits until the job's lease is back, and returns the job.
  v1::Job WaitForEnd(const std::string& id) {
    const std::string lease = absl::StrCat(id, "/", Get(id).attempt());
    EXPECT_TRUE(Eventually([&] {
      const std::vector<std::string> released = this->released();
      return std::find(released.begin(), released.end(), lease) != released.end();
    }));
    return Get(id);
  }

  std::vector<v1::JobEvent> Events(const std::string& id) {
    const absl::StatusOr<EventPage> page = store_->ReadEvents(id, 0, 100000);
    EXPECT_TRUE(page.ok()) << page.status();
    return page->events;
  }

  std::vector<std::string> Notices(const std::string& id) {
    std::vector<std::string> notices;
    for (const v1::JobEvent& event : Events(id)) {
      if (event.has_notice()) notices.push_back(event.notice().message());
    }
    return notices;
  }

  // Of the job's live worker; 0 where there is none.
  pid_t WorkerPid(const std::string& id) {
    const auto holder = WorkerLock::FindHolder(JobFolder(Get(id).folder()).LockPath());
    EXPECT_TRUE(holder.ok()) << holder.status();
    return holder.ok() && holder->has_value() ? (*holder)->pid : 0;
  }

  std::vector<std::string> released() {
    MutexLock lock(&mutex_);
    return released_;
  }
  WorkerSupervisor& supervisor() { return *supervisor_; }
  JobMachine& jobs() { return *jobs_; }

 private:
  std::unique_ptr<Store> store_;
  std::unique_ptr<EventHub> hub_;
  std::unique_ptr<JobMachine> jobs_;
  std::unique_ptr<WorkerSupervisor> supervisor_;
  Mutex mutex_;
  std::vector<std::string> released_ ABSL_GUARDED_BY(mutex_);
};

class SupervisorTest : public testing::Test {
 protected:
  // A short path, whatever TEST_TMPDIR is, with something in it that a URI would not take as it is.
  SupervisorTest() : state_folder_("/tmp/supervisor 100%_XXXXXX") {
    EXPECT_NE(mkdtemp(state_folder_.data()), nullptr);
    scratch_ = state_folder_;
    std::filesystem::create_directory(state_folder_ + "/jobs");
    worker_program_ = std::filesystem::absolute("server/workers/testing/fake_worker").string();
    Restart();
  }

  ~SupervisorTest() override {
    // No worker outlives its test.
    for (const auto& entry : std::filesystem::directory_iterator(state_folder_ + "/jobs")) {
      const auto holder = WorkerLock::FindHolder(JobFolder(entry.path().string()).LockPath());
      if (holder.ok() && holder->has_value() && (*holder)->pid > 0) kill(-(*holder)->pid, SIGKILL);
    }
    daemon_.reset();
    std::filesystem::remove_all(scratch_);
  }

  // The next daemon takes over.
  void Restart() {
    daemon_.reset();
    daemon_ = std::make_unique<Daemon>(state_folder_, worker_program_, exit_grace_);
    daemon_->Begin();
  }

  std::string state_folder_;
  // What is removed after the test.
  std::string scratch_;
  std::string worker_program_;
  // Of the next daemon.
  absl::Duration exit_grace_ = absl::Milliseconds(300);
  std::unique_ptr<Daemon> daemon_;
};

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
  EXPECT_EQ(daemon_->Notices(id), std::vector<std::string>{"1"});
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
  // The next daemon finds nothing to take over.
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

TEST_F(SupervisorTest, APauseBeforeTheStartReachesTheWorker) {
  const std::string id = daemon_->Create("wait");
  const v1::Job job = daemon_->Schedule(id);
  daemon_->Pause(id);
  daemon_->Start(job);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_PAUSED);
}

TEST_F(SupervisorTest, TheNextDaemonPausesAgain) {
  const std::string id = daemon_->Run("stubborn");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  daemon_->Pause(id);
  Restart();
  EXPECT_EQ(daemon_->Get(id).state(), v1::JOB_STATE_PAUSING);
  // One that does not listen is not killed for a pause, but for a cancellation.
  daemon_->Cancel(id);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(SupervisorTest, ACancelBeforeTheStartReachesTheWorker) {
  const std::string id = daemon_->Create("wait");
  const v1::Job job = daemon_->Schedule(id);
  daemon_->Cancel(id);
  daemon_->Start(job);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_CANCELLED);
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

TEST_F(SupervisorTest, TheNextDaemonAdoptsARunningWorker) {
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  const pid_t pid = daemon_->WorkerPid(id);
  Restart();
  EXPECT_EQ(daemon_->Get(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(daemon_->WorkerPid(id), pid);
  daemon_->Cancel(id);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(IsGone(pid));
}

TEST_F(SupervisorTest, TheNextDaemonSeesAnAdoptedWorkerDie) {
  const std::string id = daemon_->Run("parent");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  pid_t child = 0;
  std::ifstream(daemon_->Get(id).folder() + "/child") >> child;
  Restart();
  kill(daemon_->WorkerPid(id), SIGKILL);
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_TRUE(Eventually([&] { return IsGone(child); }));
}

TEST_F(SupervisorTest, TheNextDaemonCancelsAgain) {
  const std::string id = daemon_->Run("stubborn");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  daemon_->Cancel(id);
  Restart();
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(SupervisorTest, AWorkerThatDiedWithoutADaemonIsSettledByTheNext) {
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  const pid_t pid = daemon_->WorkerPid(id);
  daemon_.reset();
  kill(pid, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return IsGone(pid); }));
  Restart();
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_WORKER_LOST);
}

TEST_F(SupervisorTest, AJobWhoseWorkerWasNeverStartedWaitsAgain) {
  const std::string id = daemon_->Create("succeed");
  daemon_->Schedule(id);
  Restart();
  EXPECT_EQ(daemon_->Get(id).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(daemon_->released(), std::vector<std::string>{id + "/1"});
  daemon_->Start(daemon_->Schedule(id));
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job.attempt(), 2);
}

TEST_F(SupervisorTest, AWorkerOfAnotherAttemptIsDismissed) {
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  const v1::Job job = daemon_->Get(id);

  // The same launch with an older number and a lock of its own, started as the daemon starts them.
  std::ifstream launch(JobFolder(job.folder()).LaunchPath(1));
  std::string text(std::istreambuf_iterator<char>(launch), {});
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
  absl::StatusOr<std::unique_ptr<WorkerProcess>> process =
      WorkerProcess::Start({.program = worker_program_,
                            .arguments = {"--launch", folder + "/launch", "--lock-fd", "3"},
                            .environment = {},
                            .log_path = folder + "/log"},
                           *lock);
  ASSERT_TRUE(process.ok()) << process.status();
  pollfd ended = {(*process)->pidfd(), POLLIN, 0};
  ASSERT_EQ(poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(kDeadline))), 1);
  EXPECT_EQ((*process)->Reap().exit_code, 5);
  EXPECT_EQ(daemon_->Get(id).state(), v1::JOB_STATE_RUNNING);
}

TEST_F(SupervisorTest, AnEarlierHolderOfTheLockIsKilledForTheNextAttempt) {
  const std::string id = daemon_->Create("succeed");
  const v1::Job job = daemon_->Schedule(id);
  // A worker of an attempt that no one knows of.
  std::filesystem::create_directory(job.folder());
  absl::StatusOr<std::unique_ptr<WorkerProcess>> process = absl::UnknownError("not started");
  {
    absl::StatusOr<WorkerLock> lock = WorkerLock::Acquire(JobFolder(job.folder()).LockPath());
    ASSERT_TRUE(lock.ok());
    process = WorkerProcess::Start(
        {.program = "/bin/sleep", .arguments = {"1000"}, .environment = {}, .log_path = "/dev/null"}, *lock);
    ASSERT_TRUE(process.ok()) << process.status();
    ASSERT_TRUE(lock->SetHolder({.attempt = 0, .pid = (*process)->pid()}).ok());
  }
  daemon_->Start(job);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_TRUE(IsGone((*process)->pid()));
}

TEST_F(SupervisorTest, ALockThatIsNotFreedHoldsUpNobody) {
  const std::string id = daemon_->Create("succeed");
  const v1::Job job = daemon_->Schedule(id);
  std::filesystem::create_directory(job.folder());
  {
    // Nobody who could be killed holds it.
    absl::StatusOr<WorkerLock> lock = WorkerLock::Acquire(JobFolder(job.folder()).LockPath());
    ASSERT_TRUE(lock.ok());
    daemon_->Start(job);
    // The start came back at once, and so does the end; the next daemon queues the job again.
    daemon_.reset();
  }
  Restart();
  EXPECT_EQ(daemon_->Get(id).state(), v1::JOB_STATE_QUEUED);
  daemon_->Start(daemon_->Schedule(id));
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_SUCCEEDED);
}

TEST_F(SupervisorTest, TheNextDaemonEndsAWorkerThatStaysAfterItsJob) {
  exit_grace_ = absl::Hours(1);
  Restart();
  const std::string id = daemon_->Run("lingering");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_SUCCEEDED));
  const pid_t pid = daemon_->WorkerPid(id);
  Restart();
  // Its devices are its own while it is there.
  EXPECT_FALSE(daemon_->supervisor().WaitUntilIdle(absl::ZeroDuration()));
  EXPECT_TRUE(daemon_->released().empty());
  exit_grace_ = absl::Milliseconds(300);
  Restart();
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_TRUE(IsGone(pid));
}

TEST_F(SupervisorTest, TheNextDaemonEndsAWorkerWhoseJobWasDeleted) {
  exit_grace_ = absl::Hours(1);
  Restart();
  const std::string id = daemon_->Run("lingering");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_SUCCEEDED));
  const pid_t pid = daemon_->WorkerPid(id);
  const std::string folder = daemon_->Get(id).folder();
  daemon_->Delete(id);
  exit_grace_ = absl::Milliseconds(300);
  Restart();
  EXPECT_TRUE(Eventually([&] { return IsGone(pid) && !std::filesystem::exists(folder); }));
}

TEST_F(SupervisorTest, ADeletedJobsFolderGoes) {
  const std::string id = daemon_->Run("succeed");
  const v1::Job job = daemon_->WaitForEnd(id);
  ASSERT_TRUE(std::filesystem::exists(job.folder()));
  daemon_->Delete(id);
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(job.folder()); }));
}

TEST_F(SupervisorTest, TheNextDaemonRemovesWhatADeletedJobLeftAndNothingElse) {
  const std::string id = daemon_->Run("succeed");
  const v1::Job job = daemon_->WaitForEnd(id);
  daemon_->Delete(id);
  ASSERT_TRUE(Eventually([&] { return !std::filesystem::exists(job.folder()); }));
  // As where the daemon had died before that.
  std::filesystem::create_directory(job.folder());
  const std::string unknown = state_folder_ + "/jobs/of-another-database";
  std::filesystem::create_directory(unknown);
  Restart();
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(job.folder()); }));
  EXPECT_TRUE(std::filesystem::exists(unknown));
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
  // It goes with the daemon, where no worker needs it.
  daemon_.reset();
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(*socket).parent_path()));
}

}  // namespace
}  // namespace tandem
