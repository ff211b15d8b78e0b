// Small jobs must not overtake a gang that waits for all devices of a real daemon. This holds for a queue of
// small jobs, for small jobs that keep arriving, and for any priority of the gang.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/util/time_util.h"
#include "gtest/gtest.h"
#include "tests/integration/api.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/processes.h"

namespace tandem::testing {
namespace {

using google::protobuf::util::TimeUtil;

constexpr int kDevices = 4;
constexpr int kSmallJobs = 60;
// The interval of the small jobs, which arrive without end, five per second.
constexpr absl::Duration kArrivalEvery = absl::Milliseconds(200);
// The time between the ends of two jobs that hold the devices. Several small jobs could run in this time.
constexpr absl::Duration kBetweenEnds = absl::Seconds(1);
constexpr int kMostOvertakes = 2;
constexpr absl::Duration kPatience = absl::Minutes(3);

class GangQueueTest : public DaemonFixture {
 protected:
  GangQueueTest() : DaemonFixture(kDevices) {}

  void SetUp() override {
    DaemonFixture::SetUp();
    api_ = std::make_unique<Api>(daemon_);
  }

  v1::JobSpec OnCpus(v1::JobSpec spec, int replicas) {
    spec.mutable_replicas()->set_count(replicas);
    spec.mutable_replicas()->set_device_kind(v1::DEVICE_KIND_CPU);
    return spec;
  }
  std::string SubmitSmall() { return api_->Create(OnCpus(SmallJob({.epochs = 1}), 1)).name(); }

  // Jobs that hold all devices until the test ends them.
  void HoldAllDevices() {
    v1::JobSpec spec = LongJob(10'000'000);
    spec.mutable_training()->mutable_report()->set_every_steps(100);
    for (int i = 0; i < kDevices; ++i) holders_.push_back(api_->Create(OnCpus(spec, 1)).name());
    for (const std::string& job : holders_) {
      ASSERT_EQ(api_->WaitFor(job, v1::JOB_STATE_RUNNING).state(), v1::JOB_STATE_RUNNING) << daemon_.Log();
    }
  }
  void SubmitGang(int priority) {
    v1::JobSpec spec = OnCpus(SmallJob({.epochs = 1}), kDevices);
    spec.set_priority(priority);
    gang_ = api_->Create(spec).name();
  }
  bool GangHasStarted() { return api_->Get(gang_).has_lease_time(); }

  // Small jobs that had devices before the gang.
  int Overtakes(const std::vector<std::string>& small) {
    const v1::Job gang = api_->Get(gang_);
    EXPECT_TRUE(gang.has_lease_time());
    int overtakes = 0;
    for (const std::string& name : small) {
      const v1::Job job = api_->Get(name);
      overtakes += job.has_lease_time() && TimeUtil::TimestampToNanoseconds(job.lease_time()) <
                                               TimeUtil::TimestampToNanoseconds(gang.lease_time());
    }
    return overtakes;
  }

  // Sixty small jobs come behind the gang; then the devices become free, one after the other.
  void RunWithAQueue(int priority) {
    HoldAllDevices();
    SubmitGang(priority);
    std::vector<std::string> small;
    while (small.size() < kSmallJobs) small.push_back(SubmitSmall());
    for (const std::string& job : holders_) {
      EXPECT_FALSE(GangHasStarted());
      api_->Cancel(job);
      absl::SleepFor(kBetweenEnds);
    }
    ASSERT_TRUE(WaitUntil([&] { return GangHasStarted(); }, kPatience)) << daemon_.Log();
    EXPECT_LE(Overtakes(small), kMostOvertakes);
  }

  std::unique_ptr<Api> api_;
  std::vector<std::string> holders_;
  std::string gang_;
};

TEST_F(GangQueueTest, AQueueOfSmallJobsDoesNotPassAGang) { RunWithAQueue(/*priority=*/0); }

TEST_F(GangQueueTest, NorAGangOfHighPriority) { RunWithAQueue(/*priority=*/50); }

TEST_F(GangQueueTest, NorDoSmallJobsThatKeepComing) {
  HoldAllDevices();
  SubmitGang(/*priority=*/0);
  std::vector<std::string> small;
  size_t ended = 0;
  absl::Time next_end = absl::Now() + kBetweenEnds;
  const absl::Time deadline = absl::Now() + kPatience;
  while (!GangHasStarted() && absl::Now() < deadline) {
    small.push_back(SubmitSmall());
    if (ended < holders_.size() && absl::Now() >= next_end) {
      api_->Cancel(holders_[ended++]);
      next_end += kBetweenEnds;
    }
    absl::SleepFor(kArrivalEvery);
  }
  ASSERT_EQ(ended, holders_.size()) << daemon_.Log();
  EXPECT_LE(Overtakes(small), kMostOvertakes);
}

}  // namespace
}  // namespace tandem::testing
