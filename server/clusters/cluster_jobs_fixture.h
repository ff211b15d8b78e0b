#ifndef TANDEM_SERVER_CLUSTERS_CLUSTER_JOBS_FIXTURE_H_
#define TANDEM_SERVER_CLUSTERS_CLUSTER_JOBS_FIXTURE_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/mutex.h"
#include "server/clusters/cluster_jobs.h"
#include "server/clusters/fake_launcher.h"
#include "server/jobs/job_machine_fixture.h"
#include "server/store/eventually.h"

namespace tandem {

// For tests: cluster jobs with a job machine and a launcher without processes.
class ClusterJobsTest : public testing::Test {
 protected:
  using State = LaunchedAttempt::State;

  ClusterJobsTest() {
    std::filesystem::create_directories(JobsFolder());
    Open();
  }
  ~ClusterJobsTest() override {
    cluster_->Stop();
    // The machine's last writes, such as a notice, still call the observer.
    jobs_.Reopen();
  }

  std::string JobsFolder() {
    return std::filesystem::path(jobs_.machine().FolderOf("x")).parent_path().string();
  }

  void Open() {
    ClusterJobs::Options options;
    options.launch.worker_program = "/bin/true";
    options.jobs_folder = JobsFolder();
    options.launch.state_folder = std::filesystem::path(JobsFolder()).parent_path().string();
    options.launch.daemon_certificate = "certificate";
    options.launch.algorithms_folder = options.launch.state_folder;
    options.launch.launch.daemon_target = "ipv4:127.0.0.1:1";
    options.launch.launch.resolve_dataset = [](const v1::DatasetSpec& spec) { return spec; };
    options.cancel_grace = cancel_grace_;
    options.exit_grace = absl::Milliseconds(200);
    options.observe_every = absl::Milliseconds(10);
    options.resubmit_every = resubmit_every_;
    options.absence_limit = absl::Milliseconds(300);
    options.unstarted_absence_limit = absl::Milliseconds(100);
    options.report_limit = absl::Milliseconds(150);
    cluster_ = std::make_unique<ClusterJobs>(options, &launcher_, &jobs_.machine());
    jobs_.machine().AddObserver(cluster_.get());
  }
  void Begin() {
    std::vector<v1::Job> left;
    ASSERT_TRUE(
        jobs_.machine().VisitNonTerminalJobs([&](v1::Job job) { left.push_back(std::move(job)); }).ok());
    cluster_->Begin(left, [this](const std::string& id, int32_t attempt) {
      MutexLock lock(&mutex_);
      released_.push_back(absl::StrCat(id, "/", attempt));
    });
  }
  // Stops the daemon, and starts the next.
  void Restart() {
    cluster_->Stop();
    jobs_.Reopen();
    Open();
    Begin();
  }

  // Creates a job for the cluster and makes it STARTING.
  AttemptId Schedule(int workers = 1, const std::string& qos = "") {
    JobMachine::NewJob job;
    job.spec.set_name("job");
    job.spec.mutable_cluster()->mutable_slurm()->set_nodes(workers);
    job.spec.mutable_cluster()->mutable_slurm()->set_qos(qos);
    job.spec.mutable_replicas()->set_workers(workers);
    job.spec.mutable_replicas()->set_count(workers);
    job.spec.set_max_restarts(3);
    job.submitted_spec = job.spec;
    const std::string id = JobId(jobs_.Create(std::move(job))->name());
    Awaited<absl::StatusOr<v1::Job>> done;
    jobs_.machine().Schedule(id, {}, done.Done());
    scheduled_ = *done.Get();
    return {id, scheduled_.attempt()};
  }
  // Starts a job, and waits until the launcher has it.
  AttemptId Start() {
    const AttemptId id = Schedule();
    const size_t before = launcher_.submitted().size();
    cluster_->Start(scheduled_, {});
    EXPECT_TRUE(Eventually([&] { return launcher_.submitted().size() > before; }));
    EXPECT_TRUE(Eventually([&] {
      const auto waiting = cluster_->WaitingOf(id.job_id);
      return waiting.has_value() && absl::StrContains(waiting->message(), "waits");
    }));
    return id;
  }
  // Starts a job while the launcher is full, and waits until the job says so.
  AttemptId StartAtLimit(const std::string& qos = "") {
    const AttemptId id = Schedule(1, qos);
    cluster_->Start(scheduled_, {});
    EXPECT_TRUE(Eventually([&] {
      const auto waiting = cluster_->WaitingOf(id.job_id);
      return waiting.has_value() && absl::StrContains(waiting->message(), "too many jobs");
    }));
    return id;
  }
  void End(const AttemptId& id, v1::StateReason reason, const std::string& detail) {
    launcher_.Change(id, [&](LaunchedAttempt& attempt) {
      attempt.state = State::kEnded;
      attempt.reason = reason;
      attempt.detail = detail;
    });
  }
  bool WaitForState(const std::string& id, v1::JobState state) {
    return Eventually([&] { return jobs_.Get(id).state() == state; });
  }
  std::vector<std::string> released() {
    MutexLock lock(&mutex_);
    return released_;
  }
  JobFolder FolderOf(const AttemptId& id) { return JobFolder(jobs_.machine().FolderOf(id.job_id)); }

  JobMachineFixture jobs_;
  FakeLauncher launcher_;
  std::unique_ptr<ClusterJobs> cluster_;
  v1::Job scheduled_;
  absl::Duration cancel_grace_ = absl::Milliseconds(200);
  absl::Duration resubmit_every_ = absl::Milliseconds(10);
  Mutex mutex_;
  std::vector<std::string> released_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_CLUSTER_JOBS_FIXTURE_H_
