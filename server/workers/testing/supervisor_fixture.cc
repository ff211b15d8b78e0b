#include "server/workers/testing/supervisor_fixture.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/clock.h"
#include "engine/base/unique_fd.h"
#include "server/store/pending_result.h"
#include "server/store/records.h"
#include "server/workers/job_folder.h"
#include "server/workers/job_locks.h"
#include "server/workers/worker_lock.h"

namespace tandem {

// Uses a pidfd, like the daemon: /proc shows a zombie while other threads of the process still run.
bool IsGone(pid_t pid) {
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // EINVAL and ENOENT: the number now belongs only to a thread or a session.
  if (!pidfd.valid()) return errno == ESRCH || errno == EINVAL || errno == ENOENT;
  pollfd ended = {pidfd.get(), POLLIN, 0};
  return poll(&ended, 1, 0) == 1;
}

SupervisingDaemon::SupervisingDaemon(const std::string& state_folder, const std::string& worker_program,
                                     absl::Duration exit_grace, absl::Duration silence_limit,
                                     absl::Duration adoption_grace, absl::Duration connect_grace) {
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
  options.silence_limit = silence_limit;
  options.adoption_grace = adoption_grace;
  options.connect_grace = connect_grace;
  options.kill_grace = absl::Milliseconds(100);
  absl::StatusOr<std::unique_ptr<WorkerSupervisor>> supervisor =
      WorkerSupervisor::Create(std::move(options), jobs_.get());
  EXPECT_TRUE(supervisor.ok()) << supervisor.status();
  supervisor_ = *std::move(supervisor);
  jobs_->AddObserver(supervisor_.get());
}

SupervisingDaemon::~SupervisingDaemon() {
  supervisor_->Stop();
  store_->Close();
}

void SupervisingDaemon::Begin() {
  std::vector<v1::Job> jobs;
  const absl::Status left = jobs_->VisitNonTerminalJobs([&jobs](v1::Job job) {
    if (!IsAtRest(job.state())) jobs.push_back(std::move(job));
  });
  ASSERT_TRUE(left.ok()) << left;
  for (const v1::Job& job : supervisor_->FindLingering()) jobs.push_back(job);
  const absl::Status begun =
      supervisor_->Begin(jobs, [this](const std::string& id, int32_t attempt, bool crashed) {
        MutexLock lock(&mutex_);
        released_.push_back(absl::StrCat(id, "/", attempt, crashed ? " crashed" : ""));
      });
  ASSERT_TRUE(begun.ok()) << begun;
}

std::string SupervisingDaemon::Create(const std::string& behaviour, int workers) {
  JobMachine::NewJob job;
  job.spec.set_name(behaviour);
  job.spec.mutable_replicas()->set_workers(workers);
  const PendingResult<v1::Job> created;
  jobs_->Create(job, created.Callback());
  const absl::StatusOr<v1::Job> result = created.Wait();
  EXPECT_TRUE(result.ok()) << result.status();
  return JobId(result->name());
}

v1::Job SupervisingDaemon::Schedule(const std::string& id) {
  const PendingResult<v1::Job> scheduled;
  const int workers = Get(id).spec().replicas().workers();
  std::vector<std::string> devices;
  for (int worker = 0; worker < workers; ++worker) devices.push_back(absl::StrCat("devices/cpu:", worker));
  jobs_->Schedule(id, devices, scheduled.Callback());
  const absl::StatusOr<v1::Job> result = scheduled.Wait();
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

void SupervisingDaemon::Start(const v1::Job& job) {
  std::vector<v1::Device> devices;
  for (const std::string& name : job.devices()) {
    v1::Device& device = devices.emplace_back();
    device.set_name(name);
    device.set_kind(v1::DEVICE_KIND_CPU);
    device.set_threads(1);
  }
  supervisor_->Start(job, devices);
}

std::string SupervisingDaemon::Run(const std::string& behaviour, int workers) {
  const std::string id = Create(behaviour, workers);
  Start(Schedule(id));
  return id;
}

void SupervisingDaemon::Cancel(const std::string& id) {
  const PendingResult<v1::Job> cancelled;
  jobs_->Cancel(id, v1::STATE_REASON_CANCEL_REQUESTED, cancelled.Callback());
  EXPECT_TRUE(cancelled.Wait().ok());
}

void SupervisingDaemon::Pause(const std::string& id) {
  const PendingResult<v1::Job> paused;
  jobs_->Pause(id, paused.Callback());
  EXPECT_TRUE(paused.Wait().ok());
}

void SupervisingDaemon::Resume(const std::string& id) {
  const PendingResult<v1::Job> resumed;
  jobs_->Resume(id, /*max_queued_jobs=*/0, resumed.Callback());
  EXPECT_TRUE(resumed.Wait().ok());
}

void SupervisingDaemon::Delete(const std::string& id) {
  const PendingResult<int> deleted;
  jobs_->Delete(id, [done = deleted.Callback()](absl::Status status) mutable {
    done(status.ok() ? absl::StatusOr<int>(0) : absl::StatusOr<int>(status));
  });
  EXPECT_TRUE(deleted.Wait().ok());
}

v1::Job SupervisingDaemon::Get(const std::string& id) {
  const absl::StatusOr<v1::Job> job = jobs_->Get(id);
  EXPECT_TRUE(job.ok()) << job.status();
  return *job;
}

bool SupervisingDaemon::WaitForState(const std::string& id, v1::JobState state) {
  return Eventually([&] { return Get(id).state() == state || IsTerminal(Get(id).state()); }) &&
         Get(id).state() == state;
}

v1::Job SupervisingDaemon::WaitForEnd(const std::string& id) {
  const std::string lease = absl::StrCat(id, "/", Get(id).attempt());
  EXPECT_TRUE(Eventually([&] {
    const std::vector<std::string> released = this->released();
    return std::any_of(released.begin(), released.end(), [&lease](const std::string& one) {
      return one == lease || one == absl::StrCat(lease, " crashed");
    });
  }));
  return Get(id);
}

std::vector<std::string> SupervisingDaemon::Notices(const std::string& id) {
  std::vector<std::string> notices;
  const absl::StatusOr<EventPage> page = store_->ReadEvents(id, 0, 100000);
  EXPECT_TRUE(page.ok()) << page.status();
  for (const v1::JobEvent& event : page->events) {
    if (event.has_notice()) notices.push_back(event.notice().message());
  }
  return notices;
}

pid_t SupervisingDaemon::WorkerPid(const std::string& id, int worker) {
  const auto holder = WorkerLock::FindHolder(JobFolder(Get(id).folder()).LockPath(worker));
  EXPECT_TRUE(holder.ok()) << holder.status();
  return holder.ok() && holder->has_value() ? (*holder)->pid : 0;
}

// The monitor handles adoptions before a new worker comes and goes.
void SupervisingDaemon::WaitForAdoptions() {
  EXPECT_EQ(WaitForEnd(Run("succeed")).state(), v1::JOB_STATE_SUCCEEDED);
}

std::vector<std::string> SupervisingDaemon::released() {
  MutexLock lock(&mutex_);
  return released_;
}

SupervisorFixture::SupervisorFixture() {
  std::filesystem::create_directory(state_folder_ + "/jobs");
  worker_program_ = std::filesystem::absolute("server/workers/testing/fake_worker").string();
  Restart();
}

SupervisorFixture::~SupervisorFixture() {
  // No worker may outlive its test.
  for (const auto& entry : std::filesystem::directory_iterator(state_folder_ + "/jobs")) {
    const JobFolder folder(entry.path().string());
    for (int worker = 0; worker < CountLocks(folder); ++worker) {
      const auto holder = WorkerLock::FindHolder(folder.LockPath(worker));
      if (holder.ok() && holder->has_value() && (*holder)->pid > 0) kill(-(*holder)->pid, SIGKILL);
    }
  }
  daemon_.reset();
}

void SupervisorFixture::Restart() {
  daemon_.reset();
  daemon_ = std::make_unique<SupervisingDaemon>(state_folder_, worker_program_, exit_grace_, silence_limit_,
                                                adoption_grace_, connect_grace_);
  daemon_->Begin();
}

}  // namespace tandem
