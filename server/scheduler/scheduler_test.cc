#include "server/scheduler/scheduler.h"

#include <atomic>
#include <deque>
#include <filesystem>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "SQLiteCpp/SQLiteCpp.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/job_machine_fixture.h"
#include "server/scheduler/backfill_policy.h"
#include "server/store/awaited.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<v1::Device> MakeGpus(const std::vector<std::string>& uuids) {
  std::vector<v1::Device> devices(uuids.size());
  for (size_t i = 0; i < uuids.size(); ++i) {
    devices[i].set_name(absl::StrCat("devices/gpu:", i));
    devices[i].set_kind(v1::DEVICE_KIND_GPU);
    devices[i].mutable_gpu()->set_uuid(uuids[i]);
  }
  return devices;
}

std::vector<v1::Device> MakeCpus(int count) {
  std::vector<v1::Device> devices(count);
  for (int i = 0; i < count; ++i) {
    devices[i].set_name(absl::StrCat("devices/cpu:", i));
    devices[i].set_kind(v1::DEVICE_KIND_CPU);
  }
  return devices;
}

// Notes what it is to start.
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

  // Waits for the next.
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

class SchedulerTest : public testing::Test {
 protected:
  ~SchedulerTest() override {
    if (scheduler_ != nullptr) scheduler_->Stop();
    jobs_.store().Close();
  }

  // As a daemon's start, on what an earlier one left.
  absl::Status Open(std::vector<v1::Device> devices) {
    inventory_ = std::make_unique<Inventory>(std::move(devices));
    Scheduler::Options options;
    options.ageing_interval = ageing_interval_;
    options.quota = [this](const std::string&) { return UserQuota{most_devices_.load(), 0}; };
    scheduler_ = std::make_unique<Scheduler>(&jobs_.machine(), &jobs_.store(), inventory_.get(), &policy_,
                                             &starter_, &jobs_.clock(), std::move(options));
    jobs_.machine().AddObserver(scheduler_.get());
    jobs_.machine().SetWaitingSource(scheduler_.get());
    const absl::Status records = scheduler_->RestoreRecords();
    if (!records.ok()) return records;
    return scheduler_->Restore(*jobs_.machine().NonTerminalJobs());
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
  // With what else is to stand in its spec.
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

  // A job that has lost its worker, and may be started again three times.
  std::string LostJob() {
    v1::JobSpec spec;
    spec.set_max_restarts(3);
    const std::string id = NewJob(1, spec);
    starter_.Take();
    EXPECT_TRUE(jobs_.WorkerLost(id, 1).ok());
    scheduler_->ReleaseLease(id, 1, /*crashed=*/false);
    return id;
  }

  // Lets time go by, and has the scheduler look at the clock: it sleeps by the machine's time.
  void Pass(absl::Duration duration) {
    jobs_.clock().Advance(duration);
    scheduler_->Ping([] {});
  }

  // Waits until the scheduler has said this of a waiting job.
  void WaitFor(const std::string& id, v1::Waiting::Reason reason, int position) {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    v1::Waiting waiting;
    while (absl::Now() < deadline) {
      waiting = jobs_.machine().Get(id)->waiting();
      if (waiting.reason() == reason && waiting.position() == position) return;
      std::this_thread::yield();
    }
    ADD_FAILURE() << id << " still waits as: " << waiting.ShortDebugString();
  }

  void WaitForState(const std::string& id, v1::JobState state) {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    while (absl::Now() < deadline) {
      if (jobs_.machine().Get(id)->state() == state) return;
      std::this_thread::yield();
    }
    ADD_FAILURE() << id << " is still " << v1::JobState_Name(jobs_.machine().Get(id)->state());
  }

  absl::Status SetDeviceState(const std::string& device, v1::DeviceState state) {
    Awaited<absl::StatusOr<v1::Device>> done;
    scheduler_->SetDeviceState(device, state, "why", done.Done());
    return done.Get().status();
  }

  // The worker of the attempt trains and ends, and then its process does.
  void Finish(const std::string& id, int32_t attempt) {
    EXPECT_TRUE(jobs_.Apply(id, attempt, {Started(1), Finished(2, v1::JOB_STATE_SUCCEEDED)}).ok());
    scheduler_->ReleaseLease(id, attempt, /*crashed=*/false);
  }

  // Levels by which its wait has raised a waiting job.
  int RaisedBy(const std::string& id) {
    const v1::ListQueueResponse queue = scheduler_->ListQueue(100);
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
  const BackfillPolicy policy_;
  // Of each user.
  std::atomic<int> most_devices_ = 0;
  absl::Duration ageing_interval_ = absl::Hours(1);
  FakeStarter starter_;
  std::unique_ptr<Inventory> inventory_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, StartsAJobOnItsDevices) {
  OpenAndStart(3);
  const std::string id = NewJob(2);
  const FakeStarter::Started started = starter_.Take();
  EXPECT_EQ(started.job.name(), "jobs/" + id);
  EXPECT_EQ(started.job.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(started.job.attempt(), 1);
  EXPECT_EQ(started.job.spec().replicas().count(), 2);
  EXPECT_THAT(started.devices, ElementsAre("devices/cpu:0", "devices/cpu:1"));
  EXPECT_THAT(Holders(), ElementsAre("jobs/" + id, "jobs/" + id, ""));
  EXPECT_EQ(jobs_.machine().Get(id)->devices_size(), 2);
}

TEST_F(SchedulerTest, AJobWaitsUntilTheProcessBeforeItIsGone) {
  OpenAndStart(2);
  const std::string first = NewJob(2);
  starter_.Take();
  const std::string second = NewJob(1);
  const std::string third = NewJob(1);
  WaitFor(second, v1::Waiting::REASON_DEVICES_BUSY, 1);
  WaitFor(third, v1::Waiting::REASON_BEHIND_OTHERS, 2);

  // The job has ended, and its process has not.
  ASSERT_TRUE(jobs_.Apply(first, 1, {Started(1), Finished(2, v1::JOB_STATE_SUCCEEDED)}).ok());
  WaitFor(second, v1::Waiting::REASON_DEVICES_BUSY, 1);
  EXPECT_TRUE(starter_.IsEmpty());
  scheduler_->ReleaseLease(first, 7, /*crashed=*/false);  // another attempt's
  EXPECT_THAT(Holders(), ElementsAre("jobs/" + first, "jobs/" + first));

  scheduler_->ReleaseLease(first, 1, /*crashed=*/false);
  EXPECT_EQ(starter_.Take().job.name(), "jobs/" + second);
  EXPECT_EQ(starter_.Take().job.name(), "jobs/" + third);
  EXPECT_THAT(Holders(), ElementsAre("jobs/" + second, "jobs/" + third));
}

TEST_F(SchedulerTest, CancellingAQueuedJobMovesTheOthersUp) {
  OpenAndStart(1);
  const std::string first = NewJob(1);
  starter_.Take();
  const std::string second = NewJob(1);
  const std::string third = NewJob(1);
  WaitFor(third, v1::Waiting::REASON_BEHIND_OTHERS, 2);
  ASSERT_TRUE(jobs_.Cancel(second).ok());
  WaitFor(third, v1::Waiting::REASON_DEVICES_BUSY, 1);
  Finish(first, 1);
  EXPECT_EQ(starter_.Take().job.name(), "jobs/" + third);
}

TEST_F(SchedulerTest, GoesOnWhereAnEarlierDaemonEnded) {
  OpenAndStart(2);
  const std::string running = NewJob(1);
  const std::string other = NewJob(1);
  starter_.Take();
  starter_.Take();
  const std::string queued_first = NewJob(2);
  const std::string queued_second = NewJob(1);
  WaitFor(queued_second, v1::Waiting::REASON_BEHIND_OTHERS, 2);
  Reopen(2);
  EXPECT_THAT(Holders(), ElementsAre("jobs/" + running, "jobs/" + other));
  WaitFor(queued_first, v1::Waiting::REASON_DEVICES_BUSY, 1);
  WaitFor(queued_second, v1::Waiting::REASON_BEHIND_OTHERS, 2);
  Finish(running, 1);
  Finish(other, 1);
  EXPECT_EQ(starter_.Take().job.name(), "jobs/" + queued_first);
  Finish(queued_first, 1);
  EXPECT_EQ(starter_.Take().job.name(), "jobs/" + queued_second);
}

TEST_F(SchedulerTest, ALeaseOnADeviceThatIsGoneIsRestoredAsFarAsItGoes) {
  OpenAndStart(2);
  const std::string id = NewJob(2);
  starter_.Take();
  scheduler_->Stop();
  jobs_.store().Close();
  scheduler_.reset();
  jobs_.Reopen();
  const absl::Status status = Open(1);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("devices/cpu:1"));
  EXPECT_THAT(Holders(), ElementsAre("jobs/" + id));
  scheduler_->Start();
  scheduler_->ReleaseLease(id, 1, /*crashed=*/false);
  EXPECT_THAT(Holders(), ElementsAre(""));
}

TEST_F(SchedulerTest, AJobThatWaitsAgainStandsBeforeYoungerOnes) {
  OpenAndStart(1);
  const std::string old = NewJob(1);
  starter_.Take();
  jobs_.clock().Advance(absl::Seconds(1));
  const std::string young = NewJob(1);
  WaitFor(young, v1::Waiting::REASON_DEVICES_BUSY, 1);
  ASSERT_TRUE(jobs_.Requeue(old, 1).ok());
  WaitFor(old, v1::Waiting::REASON_LAST_ATTEMPT_ENDING, 1);
  WaitFor(young, v1::Waiting::REASON_DEVICES_BUSY, 2);
  scheduler_->ReleaseLease(old, 1, /*crashed=*/false);
  const FakeStarter::Started again = starter_.Take();
  EXPECT_EQ(again.job.name(), "jobs/" + old);
  EXPECT_EQ(again.job.attempt(), 2);
}

TEST_F(SchedulerTest, AJobThatCanNeverRunSaysSo) {
  OpenAndStart(1);
  const std::string large = NewJob(2);
  const std::string small = NewJob(1);
  EXPECT_EQ(starter_.Take().job.name(), "jobs/" + small);
  WaitFor(large, v1::Waiting::REASON_DEVICES_MISSING, 1);
}

TEST_F(SchedulerTest, TriesAgainWhereTheStoreFailed) {
  const std::string id = NewJob(1);
  const std::filesystem::path jobs = jobs_.machine().Get(id)->folder();
  const std::string database = (jobs.parent_path().parent_path() / "tandem.db").string();
  // It fails for a while, and nothing but time mends it.
  SQLite::Database(database, SQLite::OPEN_READWRITE, /*aBusyTimeoutMs=*/10'000)
      .exec(absl::StrCat(
          "CREATE TRIGGER trouble BEFORE UPDATE ON jobs WHEN CAST(strftime('%s', 'now') AS INTEGER) < ",
          absl::ToUnixSeconds(absl::Now()) + 2, " BEGIN SELECT RAISE(ABORT, 'trouble'); END"));
  OpenAndStart(1);
  EXPECT_EQ(JobId(starter_.Take().job.name()), id);
}

TEST_F(SchedulerTest, PlacesNothingAfterStop) {
  OpenAndStart(1);
  scheduler_->Stop();
  const std::string id = NewJob(1);
  scheduler_->ReleaseLease("other", 1, /*crashed=*/false);
  EXPECT_TRUE(starter_.IsEmpty());
  EXPECT_EQ(jobs_.machine().Get(id)->state(), v1::JOB_STATE_QUEUED);
}

TEST_F(SchedulerTest, AHigherPriorityHasAJobMakeRoomThatGoesOnLater) {
  OpenAndStart(1);
  v1::JobSpec preemptible;
  preemptible.set_preemptible(true);
  const std::string low = NewJob(1, preemptible);
  starter_.Take();
  ASSERT_TRUE(jobs_.Apply(low, 1, {Started(1)}).ok());
  v1::JobSpec urgent;
  urgent.set_priority(5);
  const std::string high = NewJob(1, urgent, "bob");
  WaitForState(low, v1::JOB_STATE_PREEMPTING);
  ASSERT_TRUE(jobs_.Apply(low, 1, {tandem::Finished(2, v1::JOB_STATE_PAUSED)}).ok());
  WaitFor(low, v1::Waiting::REASON_LAST_ATTEMPT_ENDING, 2);
  EXPECT_TRUE(starter_.IsEmpty());
  scheduler_->ReleaseLease(low, 1, /*crashed=*/false);
  EXPECT_EQ(JobId(starter_.Take().job.name()), high);
  Finish(high, 1);
  const FakeStarter::Started again = starter_.Take();
  EXPECT_EQ(JobId(again.job.name()), low);
  EXPECT_EQ(again.job.attempt(), 2);
}

TEST_F(SchedulerTest, TimeInWhichAJobRanIsNoWait) {
  OpenAndStart(1);
  v1::JobSpec preemptible;
  preemptible.set_preemptible(true);
  const std::string low = NewJob(1, preemptible);
  starter_.Take();
  ASSERT_TRUE(jobs_.Apply(low, 1, {Started(1)}).ok());
  jobs_.clock().Advance(absl::Hours(10));
  v1::JobSpec urgent;
  urgent.set_priority(5);
  const std::string high = NewJob(1, urgent, "bob");
  WaitForState(low, v1::JOB_STATE_PREEMPTING);
  ASSERT_TRUE(jobs_.Apply(low, 1, {tandem::Finished(2, v1::JOB_STATE_PAUSED)}).ok());
  WaitFor(low, v1::Waiting::REASON_LAST_ATTEMPT_ENDING, 2);
  scheduler_->ReleaseLease(low, 1, /*crashed=*/false);
  EXPECT_EQ(JobId(starter_.Take().job.name()), high);
  WaitFor(low, v1::Waiting::REASON_DEVICES_BUSY, 1);
  EXPECT_EQ(RaisedBy(low), 0);
  jobs_.clock().Advance(absl::Hours(2));
  EXPECT_EQ(RaisedBy(low), 2);
}

TEST_F(SchedulerTest, TimeInWhichAJobWasPausedOrOfAnotherPriorityIsNoWait) {
  OpenAndStart(1);
  const std::string running = NewJob(1);
  starter_.Take();
  const std::string id = NewJob(1, {}, "bob");
  jobs_.clock().Advance(absl::Hours(3));
  EXPECT_EQ(RaisedBy(id), 3);
  ASSERT_TRUE(jobs_.Pause(id).ok());
  jobs_.clock().Advance(absl::Hours(100));
  ASSERT_TRUE(jobs_.Resume(id).ok());
  EXPECT_EQ(RaisedBy(id), 0);
  jobs_.clock().Advance(absl::Hours(5));
  EXPECT_EQ(RaisedBy(id), 5);
  ASSERT_TRUE(jobs_.SetPriority(id, -1).ok());
  EXPECT_EQ(RaisedBy(id), 0);
}

TEST_F(SchedulerTest, ANewDaemonKnowsHowLongJobsHaveWaited) {
  OpenAndStart(1);
  const std::string running = NewJob(1);
  starter_.Take();
  const std::string next = NewJob(1);
  const std::string third = NewJob(1);
  const std::string resumed = NewJob(1, {}, "bob");
  const std::string changed = NewJob(1, {}, "carl");
  ASSERT_TRUE(jobs_.Pause(resumed).ok());
  jobs_.clock().Advance(absl::Hours(4));
  ASSERT_TRUE(jobs_.Resume(resumed).ok());
  ASSERT_TRUE(jobs_.SetPriority(changed, 1).ok());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(jobs_.AddNotice(changed, "waits").ok());
  jobs_.clock().Advance(absl::Hours(2));
  Reopen(1);
  EXPECT_EQ(RaisedBy(next), 6);
  EXPECT_EQ(RaisedBy(resumed), 2);
  EXPECT_EQ(RaisedBy(changed), 2);
  // What was started since counts, too: a queue that is served has no age.
  Finish(running, 1);
  EXPECT_EQ(JobId(starter_.Take().job.name()), next);
  jobs_.clock().Advance(absl::Hours(3));
  Reopen(1);
  EXPECT_EQ(RaisedBy(third), 3);
}

TEST_F(SchedulerTest, TimeOverTheQuotaIsNoWait) {
  most_devices_ = 1;
  OpenAndStart(2);
  const std::string first = NewJob(1);
  starter_.Take();
  const std::string second = NewJob(1);
  WaitFor(second, v1::Waiting::REASON_QUOTA, 1);
  NewJob(2, {}, "bob");  // Over it for ever.
  v1::JobSpec urgent;
  urgent.set_priority(1);
  const std::string blocker = NewJob(1, urgent, "carl");
  starter_.Take();
  jobs_.clock().Advance(absl::Hours(5));
  const std::string other = NewJob(1, urgent, "dora");
  WaitFor(other, v1::Waiting::REASON_DEVICES_BUSY, 1);
  Finish(first, 1);
  EXPECT_EQ(JobId(starter_.Take().job.name()), other);
  EXPECT_EQ(RaisedBy(second), 0);
}

// A job of higher priority comes while one that would make room for it is just becoming STARTING.
TEST_F(SchedulerTest, AJobThatIsJustStartingCanBePreemptedSoonAfter) {
  OpenAndStart(1);
  const auto new_job = [](bool preemptible, int priority) {
    JobMachine::NewJob job;
    job.user = "ann";
    job.spec.set_name("job");
    job.spec.set_preemptible(preemptible);
    job.spec.set_priority(priority);
    job.spec.mutable_replicas()->set_count(1);
    job.spec.mutable_replicas()->set_device_kind(v1::DEVICE_KIND_CPU);
    return job;
  };
  // While the store's writer stands still, both jobs are asked for: so the low one's start comes behind them.
  absl::Notification asked;
  jobs_.store().Write(
      [&](Transaction&) {
        asked.WaitForNotification();
        return absl::OkStatus();
      },
      [](const absl::Status&) {});
  std::string low, high;
  absl::Notification high_is_known;
  jobs_.machine().Create(new_job(true, 0), [&](absl::StatusOr<v1::Job> job) {
    low = JobId(job->name());
    // It gets its device now, and its start waits for the writer, which this is.
    while (Holders()[0].empty()) std::this_thread::yield();
  });
  jobs_.machine().Create(new_job(false, 5), [&](absl::StatusOr<v1::Job> job) {
    high = JobId(job->name());
    // A decision is made with it in the queue.
    absl::Notification decided;
    scheduler_->Ping([&] { decided.Notify(); });
    decided.WaitForNotification();
    high_is_known.Notify();
  });
  asked.Notify();
  high_is_known.WaitForNotification();
  EXPECT_EQ(JobId(starter_.Take().job.name()), low);
  WaitForState(low, v1::JOB_STATE_PREEMPTING);
}

// A gang waits for a device and keeps another one, which a short job may use until then.
TEST_F(SchedulerTest, WhatIsSaidToStartStartsThoughOnlyTimeHasPassed) {
  OpenAndStart(2);
  const std::string running = NewJob(1);
  starter_.Take();
  internal::v1::WorkerEvent half = MakeWorkerEvent(2);
  half.mutable_progress()->set_step(50);
  half.mutable_progress()->set_steps(100);
  jobs_.clock().Advance(absl::Hours(1));
  ASSERT_TRUE(jobs_.Apply(running, 1, {Started(1), half}).ok());
  const std::string gang = NewJob(2);
  WaitFor(gang, v1::Waiting::REASON_DEVICES_BUSY, 1);
  v1::JobSpec spec;
  spec.set_time_limit_seconds(90 * 60);
  const std::string brief = NewJob(1, spec);
  WaitFor(brief, v1::Waiting::REASON_BEHIND_OTHERS, 2);
  // The other one is slower than it seemed.
  jobs_.clock().Advance(absl::Hours(1) - absl::Minutes(1));
  scheduler_->ListQueue(10);
  EXPECT_EQ(JobId(starter_.Take().job.name()), brief);
}

TEST_F(SchedulerTest, ProgressLetsAJobStartThatFitsNow) {
  OpenAndStart(2);
  const std::string running = NewJob(1);
  starter_.Take();
  const auto progress = [](int64_t sequence, int64_t step) {
    internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
    event.mutable_progress()->set_step(step);
    event.mutable_progress()->set_steps(100);
    return event;
  };
  jobs_.clock().Advance(absl::Hours(1));
  ASSERT_TRUE(jobs_.Apply(running, 1, {Started(1), progress(2, 50)}).ok());
  const std::string gang = NewJob(2);
  v1::JobSpec spec;
  spec.set_time_limit_seconds(90 * 60);
  const std::string brief = NewJob(1, spec);
  WaitFor(brief, v1::Waiting::REASON_BEHIND_OTHERS, 2);
  jobs_.clock().Advance(absl::Hours(1));
  ASSERT_TRUE(jobs_.Apply(running, 1, {progress(3, 51)}).ok());
  EXPECT_EQ(JobId(starter_.Take().job.name()), brief);
}

// The gang keeps a device for which the other one's wait makes it go first, and nothing else happens then.
TEST_F(SchedulerTest, WaitingAloneLetsAJobStartThatItRaises) {
  ageing_interval_ = absl::Milliseconds(200);
  OpenAndStart(2);
  NewJob(1, {}, "bob");  // Nobody knows when it ends.
  starter_.Take();
  v1::JobSpec urgent;
  urgent.set_priority(5);
  const std::string gang = NewJob(2, urgent, "bob");
  WaitFor(gang, v1::Waiting::REASON_DEVICES_BUSY, 1);
  const std::string small = NewJob(1);
  WaitFor(small, v1::Waiting::REASON_BEHIND_OTHERS, 2);
  jobs_.clock().Advance(absl::Milliseconds(100));
  ASSERT_TRUE(jobs_.SetPriority(gang, 1).ok());
  EXPECT_EQ(RaisedBy(small), 0);
  jobs_.clock().Advance(absl::Milliseconds(100));
  EXPECT_EQ(JobId(starter_.Take().job.name()), small);
}

TEST_F(SchedulerTest, AChangedPriorityChangesTheOrder) {
  OpenAndStart(1);
  const std::string running = NewJob(1);
  starter_.Take();
  const std::string first = NewJob(1);
  const std::string second = NewJob(1);
  WaitFor(second, v1::Waiting::REASON_BEHIND_OTHERS, 2);
  ASSERT_TRUE(jobs_.SetPriority(second, 1).ok());
  WaitFor(second, v1::Waiting::REASON_DEVICES_BUSY, 1);
  Finish(running, 1);
  EXPECT_EQ(JobId(starter_.Take().job.name()), second);
}

TEST_F(SchedulerTest, AJobWhoseTimeIsUpIsCancelled) {
  OpenAndStart(1);
  v1::JobSpec limited;
  limited.set_time_limit_seconds(60);
  const std::string id = NewJob(1, limited);
  starter_.Take();
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
  jobs_.clock().Advance(absl::Seconds(61));
  // Whatever wakes the scheduler: its own alarm goes by the machine's time.
  NewJob(1);
  WaitForState(id, v1::JOB_STATE_CANCELLING);
  EXPECT_EQ(jobs_.machine().Get(id)->reason(), v1::STATE_REASON_TIME_LIMIT_EXCEEDED);
  ASSERT_TRUE(jobs_.Apply(id, 1, {tandem::Finished(2, v1::JOB_STATE_CANCELLED)}).ok());
  EXPECT_EQ(jobs_.machine().Get(id)->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(jobs_.machine().Get(id)->reason(), v1::STATE_REASON_TIME_LIMIT_EXCEEDED);
}

TEST_F(SchedulerTest, ATimeLimitNeedsNothingToWakeTheScheduler) {
  OpenAndStart(1);
  v1::JobSpec limited;
  limited.set_time_limit_seconds(0.05);
  const std::string id = NewJob(1, limited);
  starter_.Take();
  jobs_.clock().Advance(absl::Seconds(1));
  WaitForState(id, v1::JOB_STATE_CANCELLING);
}

TEST_F(SchedulerTest, AJobThatLostItsWorkerStartsAgainWhenItHasWaited) {
  OpenAndStart(1);
  const std::string id = LostJob();
  WaitFor(id, v1::Waiting::REASON_RESTART_DELAY, 1);
  const v1::Job waiting = *jobs_.machine().Get(id);
  EXPECT_EQ(waiting.waiting().message(), "Its worker was lost; it starts again in 1 s, restart 1 of 3.");
  EXPECT_EQ(waiting.waiting().estimated_start_time().seconds(), waiting.restart_time().seconds());
  const std::string other = NewJob(1);
  EXPECT_EQ(JobId(starter_.Take().job.name()), other);
  Reopen(1);
  Finish(other, 1);
  WaitFor(id, v1::Waiting::REASON_RESTART_DELAY, 1);
  EXPECT_TRUE(starter_.IsEmpty());
  Pass(absl::Seconds(1));
  const v1::Job again = starter_.Take().job;
  EXPECT_EQ(JobId(again.name()), id);
  EXPECT_FALSE(again.has_restart_time());
}

TEST_F(SchedulerTest, AJobThatWaitsToBeStartedAgainMayBePaused) {
  OpenAndStart(1);
  const std::string id = LostJob();
  ASSERT_TRUE(jobs_.Pause(id).ok());
  ASSERT_TRUE(jobs_.Resume(id).ok());  // Somebody's wish counts at once.
  EXPECT_EQ(JobId(starter_.Take().job.name()), id);
}

TEST_F(SchedulerTest, NoClockKeepsAJobFromStartingAgain) {
  OpenAndStart(1);
  const std::string id = LostJob();
  // It was a day ahead when the worker was lost.
  jobs_.clock().Advance(-absl::Hours(24));
  Reopen(1);
  WaitFor(id, v1::Waiting::REASON_RESTART_DELAY, 1);
  Pass(absl::Seconds(300));
  EXPECT_EQ(JobId(starter_.Take().job.name()), id);
}

TEST_F(SchedulerTest, DrainedDevicesGetNothingUntilTheyAreResumed) {
  OpenAndStart(1);
  ASSERT_TRUE(SetDeviceState("devices/cpu:0", v1::DEVICE_STATE_DRAINED).ok());
  const std::string id = NewJob(1);
  WaitFor(id, v1::Waiting::REASON_DEVICES_OUT_OF_SERVICE, 1);
  Reopen(1);
  EXPECT_EQ(scheduler_->ListDevices()[0].state(), v1::DEVICE_STATE_DRAINED);
  EXPECT_EQ(scheduler_->ListDevices()[0].state_message(), "why");
  EXPECT_TRUE(starter_.IsEmpty());
  EXPECT_EQ(SetDeviceState("devices/cpu:7", v1::DEVICE_STATE_DRAINED).code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(SetDeviceState("devices/cpu:0", v1::DEVICE_STATE_EXCLUDED).ok());
  EXPECT_EQ(SetDeviceState("devices/cpu:0", v1::DEVICE_STATE_DRAINED).code(),
            absl::StatusCode::kFailedPrecondition);
  v1::JobSpec spec;
  spec.mutable_replicas()->set_count(1);
  EXPECT_EQ(scheduler_->CheckCanRun("ann", spec, 0).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(SetDeviceState("devices/cpu:0", v1::DEVICE_STATE_ACTIVE).ok());
  EXPECT_TRUE(scheduler_->CheckCanRun("ann", spec, 0).ok());
  EXPECT_EQ(JobId(starter_.Take().job.name()), id);
}

TEST_F(SchedulerTest, ADeviceOnWhichTwoJobsCrashIsExcluded) {
  OpenAndStart(1);
  const std::string first = NewJob(1);
  for (int attempt = 1; attempt <= 2; ++attempt) {
    starter_.Take();
    ASSERT_TRUE(jobs_.WorkerLost(first, attempt).ok());
    scheduler_->ReleaseLease(first, attempt, /*crashed=*/true);
    // The same job once more counts no more.
    EXPECT_EQ(scheduler_->ListDevices()[0].faults(), 1);
    if (attempt == 1) {
      ASSERT_TRUE(jobs_.Resume(first).ok());
    }
  }
  const std::string second = NewJob(1);
  starter_.Take();
  ASSERT_TRUE(jobs_.WorkerLost(second, 1).ok());
  scheduler_->ReleaseLease(second, 1, /*crashed=*/true);
  const v1::Device device = scheduler_->ListDevices()[0];
  EXPECT_EQ(device.state(), v1::DEVICE_STATE_EXCLUDED);
  EXPECT_EQ(device.faults(), 2);
  EXPECT_THAT(device.state_message(), HasSubstr("the last that of \"jobs/" + second));
}

TEST_F(SchedulerTest, ADeviceOnWhichAJobSucceedsHasNoFaultsAnyMore) {
  OpenAndStart(1);
  const auto crash = [&] {
    const std::string id = NewJob(1);
    starter_.Take();
    EXPECT_TRUE(jobs_.WorkerLost(id, 1).ok());
    scheduler_->ReleaseLease(id, 1, /*crashed=*/true);
  };
  for (int i = 0; i < 3; ++i) {
    crash();
    EXPECT_EQ(scheduler_->ListDevices()[0].faults(), 1);
    const std::string good = NewJob(1);
    starter_.Take();
    Finish(good, 1);
    EXPECT_EQ(scheduler_->ListDevices()[0].faults(), 0);
  }
  crash();
  Reopen(1);
  EXPECT_EQ(scheduler_->ListDevices()[0].faults(), 1);
  crash();
  EXPECT_EQ(scheduler_->ListDevices()[0].state(), v1::DEVICE_STATE_EXCLUDED);
}

TEST_F(SchedulerTest, AGpuKeepsItsStateWhenItGetsAnotherNumber) {
  OpenAndStart(MakeGpus({"GPU-a", "GPU-b"}));
  ASSERT_TRUE(SetDeviceState("devices/gpu:0", v1::DEVICE_STATE_DRAINED).ok());
  Reopen(MakeGpus({"GPU-b", "GPU-a"}));
  EXPECT_THAT(States(), ElementsAre(v1::DEVICE_STATE_ACTIVE, v1::DEVICE_STATE_DRAINED));
  ASSERT_TRUE(SetDeviceState("devices/gpu:0", v1::DEVICE_STATE_EXCLUDED).ok());
  Reopen(MakeGpus({"GPU-c", "GPU-a", "GPU-b"}));
  EXPECT_THAT(States(),
              ElementsAre(v1::DEVICE_STATE_ACTIVE, v1::DEVICE_STATE_DRAINED, v1::DEVICE_STATE_EXCLUDED));
}

TEST_F(SchedulerTest, QuotasAndUsageAreKnown) {
  most_devices_ = 1;
  OpenAndStart(2);
  const std::string first = NewJob(1);
  starter_.Take();
  const std::string second = NewJob(1);
  WaitFor(second, v1::Waiting::REASON_QUOTA, 1);
  jobs_.clock().Advance(absl::Seconds(10));
  const v1::ListQueueResponse queue = scheduler_->ListQueue(10);
  ASSERT_EQ(queue.jobs_size(), 1);
  EXPECT_EQ(queue.jobs(0).job(), "jobs/" + second);
  ASSERT_EQ(queue.users_size(), 1);
  EXPECT_EQ(queue.users(0).user(), "ann");
  EXPECT_EQ(queue.users(0).device_seconds(), 10);
  EXPECT_EQ(queue.users(0).devices(), 1);
  EXPECT_EQ(queue.users(0).queued_jobs(), 1);
  EXPECT_EQ(queue.users(0).max_devices(), 1);
  Finish(first, 1);
  EXPECT_EQ(JobId(starter_.Take().job.name()), second);
  Reopen(2);
  // It has not been forgotten.
  EXPECT_EQ(scheduler_->ListQueue(10).users(0).device_seconds(), 10);
  v1::JobSpec spec;
  spec.mutable_replicas()->set_count(2);
  const absl::Status never = scheduler_->CheckCanRun("ann", spec, 0);
  EXPECT_EQ(never.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(never.message()), HasSubstr("the quota of \"ann\" is 1"));
}

TEST_F(SchedulerTest, AQuotaThatChangesLetsWaitingJobsStart) {
  most_devices_ = 1;
  OpenAndStart(2);
  NewJob(1);
  starter_.Take();
  const std::string second = NewJob(1);
  WaitFor(second, v1::Waiting::REASON_QUOTA, 1);
  most_devices_ = 0;
  scheduler_->OnQuotasChanged();
  EXPECT_EQ(JobId(starter_.Take().job.name()), second);
}

TEST_F(SchedulerTest, JobsShareADevice) {
  OpenAndStart(1);
  v1::JobSpec half;
  half.set_device_share(0.5);
  const std::string first = NewJob(1, half);
  const std::string second = NewJob(1, half);
  starter_.Take();
  starter_.Take();
  EXPECT_EQ(scheduler_->ListDevices()[0].jobs_size(), 2);
  const std::string alone = NewJob(1);
  WaitFor(alone, v1::Waiting::REASON_DEVICES_BUSY, 1);
  Reopen(1);
  EXPECT_EQ(scheduler_->ListDevices()[0].jobs_size(), 2);
  Finish(first, 1);
  EXPECT_TRUE(starter_.IsEmpty());
  Finish(second, 1);
  EXPECT_EQ(JobId(starter_.Take().job.name()), alone);
}

// Jobs of all sizes come, some are cancelled at any moment, workers end. No device has two workers at once,
// first comes first, and in the end all devices are free.
TEST_F(SchedulerTest, ManyJobs) {
  constexpr int kDevices = 3;
  constexpr int kJobs = 40;
  OpenAndStart(kDevices);
  std::mt19937 random(3);
  std::vector<std::string> ids;
  std::atomic<bool> client_is_done = false;
  std::thread client([&] {
    for (int i = 0; i < kJobs; ++i) {
      ids.push_back(NewJob(1 + static_cast<int>(random() % kDevices)));
      if (random() % 3 == 0) jobs_.Cancel(ids[random() % ids.size()]).IgnoreError();
    }
    client_is_done = true;
  });

  // The workers that there are, and what they hold.
  std::map<std::string, FakeStarter::Started> workers;
  std::set<std::string> held;
  std::mt19937 dice(4);
  const auto all_ended = [&] {
    return client_is_done && workers.empty() && starter_.IsEmpty() &&
           jobs_.machine().NonTerminalJobs()->empty();
  };
  while (!all_ended()) {
    if (!starter_.IsEmpty()) {
      const FakeStarter::Started started = starter_.Take();
      for (const std::string& device : started.devices) EXPECT_TRUE(held.insert(device).second) << device;
      workers[JobId(started.job.name())] = started;
      continue;
    }
    if (workers.empty()) {
      std::this_thread::yield();
      continue;
    }
    const auto worker = std::next(workers.begin(), dice() % workers.size());
    // It may be CANCELLING; then it ends so.
    jobs_.Apply(worker->first, 1, {Started(1), Finished(2, v1::JOB_STATE_SUCCEEDED)}).IgnoreError();
    for (const std::string& device : worker->second.devices) held.erase(device);
    const std::string id = worker->first;
    workers.erase(worker);
    scheduler_->ReleaseLease(id, 1, /*crashed=*/false);
  }
  client.join();
  EXPECT_THAT(Holders(), ElementsAre("", "", ""));
}

TEST_F(SchedulerTest, APingIsAnsweredByItsThread) {
  OpenAndStart(1);
  Awaited<std::thread::id> answered;
  scheduler_->Ping([done = answered.Done()]() mutable { done(std::this_thread::get_id()); });
  EXPECT_NE(answered.Get(), std::this_thread::get_id());
  scheduler_->Stop();
  scheduler_->Ping([] { ADD_FAILURE() << "there is no thread any more"; });
}

}  // namespace
}  // namespace tandem
