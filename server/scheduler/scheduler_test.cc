#include "server/scheduler/scheduler.h"

#include <atomic>
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
#include "server/scheduler/scheduler_fixture.h"
#include "server/store/eventually.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

// Cancels jobs that start, and notes if their workers exist when the cancellation is announced.
class CancelsAtStart : public JobObserver {
 public:
  CancelsAtStart(JobMachine* jobs, FakeStarter* starter) : jobs_(jobs), starter_(starter) {}

  void OnEvent(const v1::JobEvent& event) override {
    if (event.state_change().to() != v1::JOB_STATE_STARTING) return;
    jobs_->Cancel(JobId(event.job()), v1::STATE_REASON_CANCEL_REQUESTED,
                  [](const absl::StatusOr<v1::Job>&) {});
  }
  void OnMoved(const v1::Job& job) override {
    if (job.state() != v1::JOB_STATE_CANCELLING) return;
    was_started = !starter_->IsEmpty();
    cancelling.Notify();
  }

  std::atomic<bool> was_started = false;
  absl::Notification cancelling;

 private:
  JobMachine* const jobs_;
  FakeStarter* const starter_;
};

// Otherwise nobody tells the worker to stop.
TEST_F(SchedulerTest, AJobsWorkerIsStartedBeforeTheJobsNextChange) {
  CancelsAtStart observer(&jobs_.machine(), &starter_);
  jobs_.machine().AddObserver(&observer);
  ASSERT_TRUE(Open(1).ok());
  const std::string id = NewJob(1);
  // After the first decision, the scheduler's thread is busy.
  scheduler_->Ping([&] { observer.cancelling.WaitForNotificationWithTimeout(absl::Minutes(1)); });
  scheduler_->Start();
  ASSERT_TRUE(observer.cancelling.WaitForNotificationWithTimeout(absl::Minutes(1)));
  EXPECT_TRUE(observer.was_started);
  EXPECT_EQ(JobId(starter_.Take().job.name()), id);
  scheduler_->Stop();
  jobs_.store().Close();
}

TEST_F(SchedulerTest, AJobWaitsUntilTheProcessBeforeItIsGone) {
  OpenAndStart(2);
  const std::string first = NewJob(2);
  starter_.Take();
  const std::string second = NewJob(1);
  const std::string third = NewJob(1);
  WaitFor(second, v1::Waiting::REASON_DEVICES_BUSY, 1);
  WaitFor(third, v1::Waiting::REASON_BEHIND_OTHERS, 2);

  // The job has ended, but its process has not exited.
  ASSERT_TRUE(jobs_.Apply(first, 1, {Started(1), Finished(2, v1::JOB_STATE_SUCCEEDED)}).ok());
  WaitFor(second, v1::Waiting::REASON_DEVICES_BUSY, 1);
  EXPECT_TRUE(starter_.IsEmpty());
  scheduler_->ReleaseLease(first, 7, /*crashed=*/false);  // another attempt
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
  // The store fails for a while, and no event announces its recovery.
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
    // Another crash of the same job does not count.
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

// Other users must not lose a device to one user's jobs that crash on purpose.
TEST_F(SchedulerTest, OneUserOfSeveralExcludesADeviceLaterThanTwo) {
  OpenAndStart(1);
  const auto crash = [&](const std::string& user) {
    const std::string id = NewJob(1, {}, user);
    starter_.Take();
    EXPECT_TRUE(jobs_.WorkerLost(id, 1).ok());
    scheduler_->ReleaseLease(id, 1, /*crashed=*/true);
    return scheduler_->ListDevices()[0].state();
  };
  const auto succeed = [&](const std::string& user) {
    const std::string id = NewJob(1, {}, user);
    starter_.Take();
    Finish(id, 1);
  };
  succeed("ann");
  succeed("bob");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(crash("bob"), v1::DEVICE_STATE_ACTIVE);
  EXPECT_EQ(scheduler_->ListDevices()[0].faults(), 3);
  // Another user's crash shows that the device is at fault.
  EXPECT_EQ(crash("ann"), v1::DEVICE_STATE_EXCLUDED);
  ASSERT_TRUE(SetDeviceState("devices/cpu:0", v1::DEVICE_STATE_ACTIVE).ok());
  EXPECT_EQ(crash("ann"), v1::DEVICE_STATE_ACTIVE);
  succeed("ann");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(crash("bob"), v1::DEVICE_STATE_ACTIVE);
  EXPECT_EQ(crash("bob"), v1::DEVICE_STATE_EXCLUDED);
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
  const v1::ListQueueResponse queue = scheduler_->ListQueue(0, 10);
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
  // The usage was not forgotten.
  EXPECT_EQ(scheduler_->ListQueue(0, 10).users(0).device_seconds(), 10);
  v1::JobSpec spec;
  spec.mutable_replicas()->set_count(2);
  const absl::Status never = scheduler_->CheckCanRun("ann", spec, 0);
  EXPECT_EQ(never.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(never.message()), HasSubstr("the quota of \"ann\" is 1"));
}

TEST_F(SchedulerTest, TheQueueIsListedFromAnyPosition) {
  OpenAndStart(1);
  NewJob(1);
  starter_.Take();
  std::vector<std::string> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(NewJob(1));
  // The scheduler learns of new jobs on its own thread.
  EXPECT_TRUE(Eventually([&] { return scheduler_->ListQueue(0, 10).total_size() >= 3; }));
  const v1::ListQueueResponse second = scheduler_->ListQueue(1, 1);
  ASSERT_EQ(second.jobs_size(), 1);
  EXPECT_EQ(second.jobs(0).job(), "jobs/" + waiting[1]);
  EXPECT_EQ(second.total_size(), 3);
  const v1::ListQueueResponse rest = scheduler_->ListQueue(2, 10);
  ASSERT_EQ(rest.jobs_size(), 1);
  EXPECT_EQ(rest.jobs(0).job(), "jobs/" + waiting[2]);
  EXPECT_EQ(scheduler_->ListQueue(3, 10).jobs_size(), 0);
}

TEST_F(SchedulerTest, TheQueueListsJobsInAClustersQueueAsTheyAre) {
  cluster_waiting_.emplace().set_reason(v1::Waiting::REASON_CLUSTER);
  OpenAndStart(1);
  v1::JobSpec spec;
  spec.mutable_cluster()->mutable_slurm()->set_nodes(1);
  const std::string first = NewJob(2, spec);
  jobs_.clock().Advance(absl::Seconds(1));
  const std::string second = NewJob(1, spec, "bob");
  starter_.Take();
  starter_.Take();
  ASSERT_TRUE(jobs_.SetPriority(second, 7).ok());
  const v1::ListQueueResponse queue = scheduler_->ListQueue(0, 10);
  ASSERT_EQ(queue.jobs_size(), 2);
  EXPECT_EQ(queue.jobs(0).job(), "jobs/" + first);
  EXPECT_EQ(queue.jobs(0).devices(), 2);
  EXPECT_EQ(queue.jobs(0).user(), "ann");
  EXPECT_EQ(queue.jobs(0).waiting().reason(), v1::Waiting::REASON_CLUSTER);
  EXPECT_EQ(queue.jobs(1).job(), "jobs/" + second);
  EXPECT_EQ(queue.jobs(1).priority(), 7);
  ASSERT_EQ(queue.users_size(), 2);
  EXPECT_EQ(queue.users(1).queued_jobs(), 1);
  const v1::ListQueueResponse rest = scheduler_->ListQueue(1, 10);
  EXPECT_EQ(rest.total_size(), 2);
  ASSERT_EQ(rest.jobs_size(), 1);
  EXPECT_EQ(rest.jobs(0).job(), "jobs/" + second);
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

// Random jobs arrive, some are cancelled, and workers end. A device never has two workers, jobs start in
// order, and in the end all devices are free.
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

  // The running workers and their devices.
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
    // It may be CANCELLING, and then ends CANCELLED.
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
