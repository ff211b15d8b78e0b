#ifndef TANDEM_SERVER_SCHEDULER_SCHEDULER_FIXTURE_H_
#define TANDEM_SERVER_SCHEDULER_SCHEDULER_FIXTURE_H_

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/jobs/job_machine_fixture.h"
#include "server/scheduler/backfill_policy.h"
#include "server/scheduler/scheduler.h"
#include "server/store/awaited.h"
#include "server/store/eventually.h"

namespace tandem {

inline std::vector<v1::Device> MakeGpus(const std::vector<std::string>& uuids) {
  std::vector<v1::Device> devices(uuids.size());
  for (size_t i = 0; i < uuids.size(); ++i) {
    devices[i].set_name(absl::StrCat("devices/gpu:", i));
    devices[i].set_kind(v1::DEVICE_KIND_GPU);
    devices[i].mutable_gpu()->set_uuid(uuids[i]);
  }
  return devices;
}

inline std::vector<v1::Device> MakeCpus(int count) {
  std::vector<v1::Device> devices(count);
  for (int i = 0; i < count; ++i) {
    devices[i].set_name(absl::StrCat("devices/cpu:", i));
    devices[i].set_kind(v1::DEVICE_KIND_CPU);
  }
  return devices;
}

// Records the workers to start.
class FakeStarter : public WorkerStarter {
 public:
  struct Started {
    v1::Job job;
    std::vector<std::string> devices;
  };

  void Start(const v1::Job& job, const std::vector<v1::Device>& devices) override {
    Started started{job, {}};
    for (const v1::Device& device : devices) started.devices.push_back(device.name());
    MutexLock lock(&mutex_);
    started_.push_back(std::move(started));
  }

  // Blocks for the next worker.
  Started Take() {
    MutexLock lock(&mutex_);
    const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !started_.empty(); };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&some), absl::Minutes(1))) {
      ADD_FAILURE() << "nothing was started within a minute";
      return {};
    }
    Started first = std::move(started_.front());
    started_.pop_front();
    return first;
  }
  bool IsEmpty() {
    MutexLock lock(&mutex_);
    return started_.empty();
  }

 private:
  Mutex mutex_;
  std::deque<Started> started_ ABSL_GUARDED_BY(mutex_);
};

// Keeps the jobs that held devices or ran on a cluster at the last decision. Thread-safe.
class RecordingPolicy : public BackfillPolicy {
 public:
  Decision Decide(const Snapshot& snapshot) const override {
    {
      MutexLock lock(&mutex_);
      holding_ = snapshot.holding;
    }
    return BackfillPolicy::Decide(snapshot);
  }
  std::vector<HoldingJob> holding() const {
    MutexLock lock(&mutex_);
    return holding_;
  }

 private:
  mutable Mutex mutex_;
  mutable std::vector<HoldingJob> holding_ ABSL_GUARDED_BY(mutex_);
};

// A scheduler over a store, with a settable clock and recorded workers.
class SchedulerTest : public testing::Test {
 protected:
  ~SchedulerTest() override {
    if (scheduler_ != nullptr) scheduler_->Stop();
    jobs_.store().Close();
  }

  // Opens the scheduler like a new daemon on an earlier daemon's state.
  absl::Status Open(std::vector<v1::Device> devices) {
    inventory_ = std::make_unique<Inventory>(std::move(devices));
    Scheduler::Options options;
    options.ageing_interval = ageing_interval_;
    options.quota = [this](const std::string&) { return UserQuota{most_devices_.load(), 0}; };
    options.cluster_waiting = [this](const std::string&) { return cluster_waiting_; };
    scheduler_ = std::make_unique<Scheduler>(&jobs_.machine(), &jobs_.store(), inventory_.get(), &policy_,
                                             &starter_, &jobs_.settable_clock(), std::move(options));
    jobs_.machine().AddObserver(scheduler_.get());
    jobs_.machine().SetWaitingSource(scheduler_.get());
    const absl::Status records = scheduler_->RestoreRecords();
    if (!records.ok()) return records;
    std::vector<v1::Job> left;
    const absl::Status visited = jobs_.machine().VisitNonTerminalJobs(
        [&left](v1::Job job) { left.push_back(Scheduler::Trimmed(std::move(job))); });
    if (!visited.ok()) return visited;
    return scheduler_->Restore(left);
  }
  absl::Status Open(int cpus) { return Open(MakeCpus(cpus)); }
  void OpenAndStart(int cpus) { OpenAndStart(MakeCpus(cpus)); }
  void OpenAndStart(std::vector<v1::Device> devices) {
    ASSERT_TRUE(Open(std::move(devices)).ok());
    scheduler_->Start();
  }
  void Reopen(int cpus) { Reopen(MakeCpus(cpus)); }
  void Reopen(std::vector<v1::Device> devices) {
    scheduler_->Stop();
    jobs_.store().Close();
    scheduler_.reset();
    jobs_.Reopen();
    OpenAndStart(std::move(devices));
  }

  std::string NewJob(int replicas) { return NewJob(replicas, {}); }
  // `more` has the other fields of the spec.
  std::string NewJob(int replicas, const v1::JobSpec& more, const std::string& user = "ann") {
    JobMachine::NewJob job;
    job.spec = more;
    job.user = user;
    job.spec.set_name("job");
    job.spec.mutable_replicas()->set_count(replicas);
    job.spec.mutable_replicas()->set_device_kind(v1::DEVICE_KIND_CPU);
    const auto made = jobs_.Create(std::move(job));
    EXPECT_TRUE(made.ok()) << made.status();
    return JobId(made->name());
  }

  // Creates a job that lost its worker and may restart three times.
  std::string LostJob() {
    v1::JobSpec spec;
    spec.set_max_restarts(3);
    const std::string id = NewJob(1, spec);
    starter_.Take();
    EXPECT_TRUE(jobs_.WorkerLost(id, 1).ok());
    scheduler_->ReleaseLease(id, 1, /*crashed=*/false);
    return id;
  }

  // Lets time pass and wakes the scheduler, because its waits use the real time.
  void Pass(absl::Duration duration) {
    jobs_.clock().Advance(duration);
    scheduler_->Ping([] {});
  }

  // Blocks for a decision that has seen all earlier changes.
  void AwaitDecision() {
    Awaited<absl::Status> decided;
    scheduler_->Ping([done = decided.Done()]() mutable { done(absl::OkStatus()); });
    EXPECT_TRUE(decided.Get().ok());
  }

  // Blocks until the scheduler gives this reason and position for a waiting job.
  void WaitFor(const std::string& id, v1::Waiting::Reason reason, int position) {
    v1::Waiting waiting;
    EXPECT_TRUE(Eventually([&] {
      waiting = jobs_.machine().Get(id)->waiting();
      return waiting.reason() == reason && waiting.position() == position;
    })) << id
        << " still waits as: " << waiting.ShortDebugString();
  }

  void WaitForState(const std::string& id, v1::JobState state) {
    EXPECT_TRUE(Eventually([&] { return jobs_.machine().Get(id)->state() == state; }))
        << id << " is still " << v1::JobState_Name(jobs_.machine().Get(id)->state());
  }

  absl::Status SetDeviceState(const std::string& device, v1::DeviceState state) {
    Awaited<absl::StatusOr<v1::Device>> done;
    scheduler_->SetDeviceState(device, state, "why", done.Done());
    return done.Get().status();
  }

  // Lets the attempt's worker train, end and exit. `sequence` is its next event's number.
  void Finish(const std::string& id, int32_t attempt, int64_t sequence = 1) {
    if (sequence == 1) {
      EXPECT_TRUE(jobs_.Apply(id, attempt, {Started(sequence++)}).ok());
    }
    EXPECT_TRUE(jobs_.Apply(id, attempt, {Finished(sequence, v1::JOB_STATE_SUCCEEDED)}).ok());
    scheduler_->ReleaseLease(id, attempt, /*crashed=*/false);
  }

  // Returns the levels by which its wait has raised a waiting job.
  int RaisedBy(const std::string& id) {
    const v1::ListQueueResponse queue = scheduler_->ListQueue(0, 100);
    for (const v1::QueuedJob& job : queue.jobs()) {
      if (JobId(job.job()) == id) return job.raised_by();
    }
    ADD_FAILURE() << id << " is not in the queue";
    return -1;
  }

  std::vector<v1::DeviceState> States() {
    std::vector<v1::DeviceState> states;
    for (const v1::Device& device : scheduler_->ListDevices()) states.push_back(device.state());
    return states;
  }

  std::vector<std::string> Holders() {
    std::vector<std::string> holders;
    for (const v1::Device& device : scheduler_->ListDevices()) holders.push_back(device.job());
    return holders;
  }

  JobMachineFixture jobs_;
  RecordingPolicy policy_;
  // The quota of each user.
  std::atomic<int> most_devices_ = 0;
  absl::Duration ageing_interval_ = absl::Hours(1);
  // Why each STARTING job waits in a cluster's queue. Set before Open.
  std::optional<v1::Waiting> cluster_waiting_;
  FakeStarter starter_;
  std::unique_ptr<Inventory> inventory_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_SCHEDULER_FIXTURE_H_
