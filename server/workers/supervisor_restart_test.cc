// Tests the next daemon's treatment of existing workers.

#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "server/store/records.h"
#include "server/workers/job_folder.h"
#include "server/workers/kept_weights.h"
#include "server/workers/spool.h"
#include "server/workers/supervisor.h"
#include "server/workers/testing/supervisor_fixture.h"
#include "server/workers/worker_lock.h"
#include "server/workers/worker_record.h"

namespace tandem {
namespace {

using SupervisorRestartTest = SupervisorFixture;

int64_t PeakMemory() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss << 10;
}

TEST_F(SupervisorRestartTest, TheNextDaemonAdoptsARunningWorker) {
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

// A package may install a new version while jobs train: other files under the same names.
TEST_F(SupervisorRestartTest, ANewProgramTakesOverTheWorkersOfTheOldOne) {
  const std::string original = worker_program_;
  const auto install = [&] {
    const std::string next = state_folder_ + "/worker.new";
    std::filesystem::copy_file(original, next);
    std::filesystem::rename(next, worker_program_);
  };
  const auto program_of = [](pid_t pid) {
    return std::filesystem::read_symlink(absl::StrCat("/proc/", pid, "/exe")).string();
  };
  worker_program_ = state_folder_ + "/worker";
  install();
  Restart();
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  const pid_t pid = daemon_->WorkerPid(id);
  daemon_.reset();
  install();
  Restart();
  EXPECT_EQ(program_of(pid), std::filesystem::canonical(worker_program_).string() + " (deleted)");
  EXPECT_EQ(daemon_->WorkerPid(id), pid);
  // The next job uses the new program.
  const std::string next = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(next, v1::JOB_STATE_RUNNING));
  EXPECT_EQ(program_of(daemon_->WorkerPid(next)), std::filesystem::canonical(worker_program_).string());
  // The daemon reaches both.
  for (const std::string& job : {id, next}) {
    daemon_->Pause(job);
    const v1::Job paused = daemon_->WaitForEnd(job);
    EXPECT_EQ(paused.state(), v1::JOB_STATE_PAUSED);
    EXPECT_EQ(paused.message(), "as the test wants it");
    EXPECT_EQ(paused.attempt(), 1);
  }
}

TEST_F(SupervisorRestartTest, AWorkerOfAVersionThatIsNotSpokenIsEnded) {
  // The first worker reports no version.
  for (const char* protocol : {"protocol 0", "protocol 99"}) {
    const std::string id = daemon_->Run(protocol);
    const v1::Job job = daemon_->WaitForEnd(id);
    // Like any lost worker: the job restarts from its checkpoint if it may.
    EXPECT_EQ(job.reason(), v1::STATE_REASON_WORKER_LOST);
    EXPECT_NE(job.message().find("another version of Tandem"), std::string::npos) << job.message();
    EXPECT_NE(job.message().find(protocol), std::string::npos) << job.message();
    EXPECT_EQ(daemon_->WorkerPid(id), 0);
  }
}

TEST_F(SupervisorRestartTest, TheNextDaemonSeesAnAdoptedWorkerDie) {
  const std::string id = daemon_->Run("parent");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  pid_t child = 0;
  std::ifstream(daemon_->Get(id).folder() + "/child") >> child;
  Restart();
  daemon_->WaitForAdoptions();
  ASSERT_GT(child, 0);
  kill(daemon_->WorkerPid(id), SIGKILL);
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_TRUE(Eventually([&] { return IsGone(child); }));
}

TEST_F(SupervisorRestartTest, TheNextDaemonCancelsAgain) {
  const std::string id = daemon_->Run("stubborn");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  daemon_->Cancel(id);
  Restart();
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(SupervisorRestartTest, AWorkerThatDiedWithoutADaemonIsSettledByTheNext) {
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

// Only silence reveals the hang, and the new daemon never had a connection.
TEST_F(SupervisorRestartTest, AWorkerThatHangsWithoutADaemonIsKilledByTheNext) {
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  const pid_t pid = daemon_->WorkerPid(id);
  daemon_.reset();
  kill(pid, SIGSTOP);
  silence_limit_ = absl::Seconds(1);
  Restart();
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_NE(job.message().find("silent for more than 1s"), std::string::npos) << job.message();
  EXPECT_TRUE(IsGone(pid));
}

// A hijacked worker can remove or free its lock.
TEST_F(SupervisorRestartTest, AWorkerWithoutALockIsAdoptedByItsRecord) {
  const std::string id = daemon_->Run("wait", /*workers=*/2);
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  const pid_t pids[] = {daemon_->WorkerPid(id, 0), daemon_->WorkerPid(id, 1)};
  const JobFolder folder(daemon_->Get(id).folder());
  daemon_.reset();
  for (int worker = 0; worker < 2; ++worker) std::filesystem::remove(folder.LockPath(worker));
  Restart();
  EXPECT_EQ(daemon_->Get(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_TRUE(daemon_->released().empty());
  daemon_->Cancel(id);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_CANCELLED);
  for (const pid_t pid : pids) EXPECT_TRUE(Eventually([pid] { return IsGone(pid); }));
  EXPECT_FALSE(ReadWorkerRecord(folder.path()).has_value());
}

// It can also pass its lock to other processes. They are left alone, and the job ends with its own worker.
TEST_F(SupervisorRestartTest, ALockThatSomebodyElseHoldsIsNoWorker) {
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  const pid_t pid = daemon_->WorkerPid(id);
  const JobFolder folder(daemon_->Get(id).folder());
  daemon_.reset();
  kill(pid, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return IsGone(pid); }));
  std::string lock = folder.LockPath();
  char flock[] = "flock", sleep[] = "sleep", time[] = "600";
  char* const arguments[] = {flock, lock.data(), sleep, time, nullptr};
  pid_t bystander = 0;
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  ASSERT_EQ(posix_spawnp(&bystander, "flock", nullptr, &attributes, arguments, environ), 0);
  posix_spawnattr_destroy(&attributes);
  const auto is_held = [&] {
    const auto holder = WorkerLock::FindHolder(lock);
    return holder.ok() && holder->has_value();
  };
  ASSERT_TRUE(Eventually(is_held));
  // If the record is lost, the lock's holder may be the worker.
  const std::optional<WorkerRecord> record = ReadWorkerRecord(folder.path());
  ASSERT_TRUE(record.has_value());
  RemoveWorkerRecord(folder.path());
  silence_limit_ = absl::Milliseconds(100);
  Restart();
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_TRUE(daemon_->released().empty());
  EXPECT_EQ(kill(bystander, 0), 0);
  EXPECT_TRUE(is_held());
  daemon_.reset();
  ASSERT_TRUE(WriteWorkerRecord(folder.path(), *record).ok());
  Restart();
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(kill(bystander, 0), 0);
  EXPECT_TRUE(is_held());
  kill(-bystander, SIGKILL);
  EXPECT_EQ(waitpid(bystander, nullptr, 0), bystander);
}

TEST_F(SupervisorRestartTest, RecordsOfWorkersThatAreGoneGo) {
  const std::string id = daemon_->Run("succeed");
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_SUCCEEDED);
  const std::string folder = daemon_->Get(id).folder();
  EXPECT_FALSE(ReadWorkerRecord(folder).has_value());
  // The state if the daemon had died before.
  ASSERT_TRUE(WriteWorkerRecord(folder, {.attempt = 1, .processes = {{1, 1}}}).ok());
  std::ofstream(WorkerRecordPath(folder) + kUnfinishedEnding) << "system=";
  Restart();
  EXPECT_FALSE(std::filesystem::exists(WorkerRecordPath(folder)));
  EXPECT_FALSE(std::filesystem::exists(WorkerRecordPath(folder) + kUnfinishedEnding));
}

// A hijacked worker can write any pid into its lock. If its record is lost, the process that has the lock
// counts.
TEST_F(SupervisorRestartTest, AWorkerThatNamesAnotherProcessIsFoundAllTheSame) {
  char sleep[] = "sleep", time[] = "600";
  char* const arguments[] = {sleep, time, nullptr};
  pid_t bystander = 0;
  ASSERT_EQ(posix_spawnp(&bystander, "sleep", nullptr, nullptr, arguments, environ), 0);
  // This process stands for the next daemon, and no process has the pid 0.
  for (const pid_t named : {bystander, getpid(), pid_t{0}}) {
    const std::string id = daemon_->Run("wait");
    ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
    const pid_t pid = daemon_->WorkerPid(id);
    const std::string lock = JobFolder(daemon_->Get(id).folder()).LockPath(0);
    daemon_.reset();
    kill(pid, SIGSTOP);
    std::ofstream(lock, std::ios::in | std::ios::out)
        << absl::StrFormat("attempt=%010d pid=%010d\n", 1, named);
    std::filesystem::permissions(lock, std::filesystem::perms::none);
    RemoveWorkerRecord(std::filesystem::path(lock).parent_path().string());
    silence_limit_ = absl::Seconds(1);
    Restart();
    EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_FAILED);
    EXPECT_TRUE(IsGone(pid));
    EXPECT_EQ(kill(bystander, 0), 0);
  }
  kill(bystander, SIGKILL);
  int status = 0;
  waitpid(bystander, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

// The spool is read in pieces, however much it claims in few bytes.
TEST_F(SupervisorRestartTest, ASpoolThatIsFullOfNothingTakesNoMemory) {
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  const pid_t pid = daemon_->WorkerPid(id);
  const std::string spool = JobFolder(daemon_->Get(id).folder()).SpoolPath(1);
  daemon_.reset();
  kill(pid, SIGKILL);
  std::filesystem::remove(spool);
  {
    const auto writer = SpoolWriter::Create(spool);
    ASSERT_TRUE(writer.ok()) << writer.status();
    internal::v1::WorkerEvent event;
    event.mutable_report()->mutable_notice()->set_message(std::string(3 << 20, ' '));
    for (int i = 1; i <= 200; ++i) {
      event.set_worker_sequence(i);
      ASSERT_TRUE((*writer)->Append(event).ok());
    }
    event.mutable_report()->mutable_notice()->set_message(std::string(5 << 20, ' '));
    EXPECT_EQ((*writer)->Append(event).code(), absl::StatusCode::kInvalidArgument);
  }
  const int64_t before = PeakMemory();
  Restart();
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_FAILED);
  EXPECT_LT(PeakMemory() - before, int64_t{100} << 20);
}

// The worker was between two searches when this daemon started.
TEST_F(SupervisorRestartTest, AWorkerThatComesBackLateIsAdopted) {
  const std::string id = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  const pid_t pid = daemon_->WorkerPid(id);
  daemon_.reset();
  kill(pid, SIGSTOP);
  silence_limit_ = absl::Seconds(1);
  adoption_grace_ = absl::Hours(1);
  Restart();
  absl::SleepFor(2 * silence_limit_);
  kill(pid, SIGCONT);
  EXPECT_EQ(daemon_->Get(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(daemon_->WorkerPid(id), pid);
  daemon_->Cancel(id);
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(job.attempt(), 1);
}

TEST_F(SupervisorRestartTest, AJobWhoseWorkerWasNeverStartedWaitsAgain) {
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

TEST_F(SupervisorRestartTest, ALockThatIsNotFreedHoldsUpNobody) {
  const std::string id = daemon_->Create("succeed");
  const v1::Job job = daemon_->Schedule(id);
  std::filesystem::create_directory(job.folder());
  {
    // No process that could be killed holds the lock.
    absl::StatusOr<WorkerLock> lock = WorkerLock::Acquire(JobFolder(job.folder()).LockPath());
    ASSERT_TRUE(lock.ok());
    daemon_->Start(job);
    // Start returned at once, and so does the stop. The next daemon queues the job again.
    daemon_.reset();
  }
  Restart();
  EXPECT_EQ(daemon_->Get(id).state(), v1::JOB_STATE_QUEUED);
  daemon_->Start(daemon_->Schedule(id));
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_SUCCEEDED);
}

TEST_F(SupervisorRestartTest, TheNextDaemonEndsAWorkerThatStaysAfterItsJob) {
  exit_grace_ = absl::Hours(1);
  Restart();
  const std::string id = daemon_->Run("lingering");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_SUCCEEDED));
  const pid_t pid = daemon_->WorkerPid(id);
  Restart();
  // It keeps its devices until it ends.
  EXPECT_FALSE(daemon_->supervisor().WaitUntilIdle(absl::ZeroDuration()));
  EXPECT_TRUE(daemon_->released().empty());
  exit_grace_ = absl::Milliseconds(300);
  Restart();
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_TRUE(IsGone(pid));
}

TEST_F(SupervisorRestartTest, TheNextDaemonEndsAWorkerWhoseJobWasDeleted) {
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

// A restored database does not know jobs that were made after its backup.
TEST_F(SupervisorRestartTest, TheNextDaemonEndsAWorkerWhoseJobItsDatabaseDoesNotKnow) {
  const auto forget_all_jobs = [this] {
    daemon_.reset();
    for (const char* const side : {"", "-wal", "-shm"}) {
      std::filesystem::remove(absl::StrCat(state_folder_, "/tandem.db", side));
    }
  };
  // If the worker does not connect, it ends by a signal.
  exit_grace_ = absl::Hours(1);
  Restart();
  const std::string id = daemon_->Run("unconnected", /*workers=*/2);
  ASSERT_TRUE(Eventually([&] { return daemon_->WorkerPid(id, 0) != 0 && daemon_->WorkerPid(id, 1) != 0; }));
  const pid_t pids[] = {daemon_->WorkerPid(id, 0), daemon_->WorkerPid(id, 1)};
  const std::string folder = daemon_->Get(id).folder();
  forget_all_jobs();
  Restart();
  // Until then it keeps its devices.
  const std::vector<v1::Job> lingering = daemon_->supervisor().FindLingering();
  ASSERT_EQ(lingering.size(), 1);
  EXPECT_EQ(lingering[0].name(), JobName(id));
  EXPECT_EQ(lingering[0].attempt(), 1);
  EXPECT_EQ(std::vector<std::string>(lingering[0].devices().begin(), lingering[0].devices().end()),
            (std::vector<std::string>{"devices/cpu:0", "devices/cpu:1"}));
  EXPECT_FALSE(daemon_->supervisor().WaitUntilIdle(absl::ZeroDuration()));
  EXPECT_TRUE(daemon_->released().empty());
  for (const pid_t pid : pids) EXPECT_FALSE(IsGone(pid));
  exit_grace_ = absl::Milliseconds(300);
  Restart();
  EXPECT_TRUE(Eventually([&] { return !daemon_->released().empty(); }));
  EXPECT_EQ(daemon_->released(), std::vector<std::string>{id + "/1"});
  for (const pid_t pid : pids) EXPECT_TRUE(IsGone(pid));
  EXPECT_TRUE(std::filesystem::exists(JobFolder(folder).LaunchPath(1)));
  // A worker that connects is dismissed.
  exit_grace_ = absl::Hours(1);
  Restart();
  const std::string other = daemon_->Run("wait");
  ASSERT_TRUE(daemon_->WaitForState(other, v1::JOB_STATE_RUNNING));
  const pid_t pid = daemon_->WorkerPid(other);
  forget_all_jobs();
  Restart();
  EXPECT_TRUE(Eventually([&] { return !daemon_->released().empty(); }));
  EXPECT_EQ(daemon_->released(), std::vector<std::string>{other + "/1"});
  EXPECT_TRUE(IsGone(pid));
}

TEST_F(SupervisorRestartTest, TheNextDaemonRemovesWhatADeletedJobLeftAndNothingElse) {
  const std::string id = daemon_->Run("succeed");
  const v1::Job job = daemon_->WaitForEnd(id);
  daemon_->Delete(id);
  ASSERT_TRUE(Eventually([&] { return !std::filesystem::exists(job.folder()); }));
  // The state if the daemon had died before.
  std::filesystem::create_directory(job.folder());
  const std::string unknown = state_folder_ + "/jobs/of-another-database";
  std::filesystem::create_directory(unknown);
  Restart();
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(job.folder()); }));
  EXPECT_TRUE(std::filesystem::exists(unknown));
}

TEST_F(SupervisorRestartTest, TheNextDaemonPausesAgain) {
  const std::string id = daemon_->Run("stubborn");
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  daemon_->Pause(id);
  Restart();
  EXPECT_EQ(daemon_->Get(id).state(), v1::JOB_STATE_PAUSING);
  // A worker that ignores a pause is not killed, but a cancellation kills it.
  daemon_->Cancel(id);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_CANCELLED);
}

// Kept weights that an earlier daemon did not remove.
TEST_F(SupervisorRestartTest, KeptWeightsThatNoJobNeedsGo) {
  const v1::Job succeeded = daemon_->WaitForEnd(daemon_->Run("succeed"));
  const v1::Job failed = daemon_->WaitForEnd(daemon_->Run("exit"));
  const v1::Job deleted = daemon_->WaitForEnd(daemon_->Run("succeed"));
  daemon_->Delete(JobId(deleted.name()));
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(deleted.folder()); }));
  daemon_.reset();
  // Kept weights without a job, as after a restoration: once with a folder, and once without.
  const std::string unknown = state_folder_ + "/jobs/unknown";
  const std::string gone = state_folder_ + "/jobs/gone";
  std::filesystem::create_directory(unknown);
  std::filesystem::create_directory(KeptWeightsFolder(state_folder_ + "/jobs"));
  for (const std::string& folder : {succeeded.folder(), failed.folder(), deleted.folder(), unknown, gone}) {
    std::ofstream(KeptWeightsPath(folder)) << "weights";
  }
  Restart();
  for (const std::string& folder : {succeeded.folder(), deleted.folder(), gone}) {
    EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(KeptWeightsPath(folder)); })) << folder;
  }
  daemon_.reset();
  for (const std::string& folder : {failed.folder(), unknown}) {
    EXPECT_TRUE(std::filesystem::exists(KeptWeightsPath(folder))) << folder;
  }
}

}  // namespace
}  // namespace tandem
