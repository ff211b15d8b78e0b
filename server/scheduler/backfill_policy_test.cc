#include "server/scheduler/backfill_policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kGiB = 1 << 30;

class BackfillPolicyTest : public testing::Test {
 protected:
  BackfillPolicyTest() {
    snapshot_.now = snapshot_.monotonic_now = absl::FromUnixSeconds(1'700'000'000);
    snapshot_.queue = &queue_;
  }

  void AddDevices(int count, v1::DeviceKind kind = v1::DEVICE_KIND_CPU, int64_t memory_bytes = 8 * kGiB) {
    for (int i = 0; i < count; ++i) {
      const char* const name = kind == v1::DEVICE_KIND_GPU ? "gpu" : "cpu";
      snapshot_.devices.push_back(
          {absl::StrCat("devices/", name, ":", i), kind, memory_bytes, v1::DEVICE_STATE_ACTIVE});
    }
  }

  // A job that needs CPU devices for an hour, which is also its time limit. Each job is a second younger than
  // the job before.
  WaitingJob Job(const std::string& id, int devices = 1) {
    WaitingJob job;
    job.id = id;
    job.user = "ann";
    job.create_time = snapshot_.now - absl::Minutes(10) + absl::Seconds(queue_.size());
    job.waits_since = job.create_time;
    job.gang.device_kind = v1::DEVICE_KIND_CPU;
    job.gang.devices = job.gang.replicas = devices;
    job.gang.replica_memory_bytes = kGiB;
    job.expected_run_time = job.longest_run_time = absl::Hours(1);
    return job;
  }
  // The same with another time limit.
  WaitingJob LimitedJob(const std::string& id, absl::Duration limit) {
    WaitingJob job = Job(id);
    job.longest_run_time = limit;
    return job;
  }
  // The same without a time limit, and with an estimated run time of zero.
  WaitingJob UnlimitedJob(const std::string& id) {
    WaitingJob job = LimitedJob(id, absl::InfiniteDuration());
    job.expected_run_time = absl::ZeroDuration();
    return job;
  }
  void Wait(WaitingJob job) { ASSERT_TRUE(queue_.Add(std::move(job))); }

  // A job on devices at these positions for another `rest`, which is also its time limit.
  HoldingJob& Hold(const std::string& id, std::vector<int> devices, absl::Duration rest = absl::Hours(1)) {
    HoldingJob& job = snapshot_.holding.emplace_back();
    job.id = id;
    job.user = "bob";
    job.devices = std::move(devices);
    job.memory_bytes = kGiB;
    job.lease_time = snapshot_.now - absl::Minutes(1);
    job.expected_end = job.latest_end = snapshot_.now + rest;
    return job;
  }

  // Returns for example "a: devices/cpu:0 devices/cpu:1".
  std::vector<std::string> Placed() {
    std::vector<std::string> placed;
    for (const Placement& placement : policy_.Decide(snapshot_).placements) {
      std::string text = placement.job_id + ":";
      for (const std::string& device : placement.devices) absl::StrAppend(&text, " ", device.substr(8));
      placed.push_back(text);
    }
    return placed;
  }
  std::vector<std::string> Order() {
    std::vector<std::string> order;
    for (const Explanation& explanation : policy_.Explain(snapshot_)) order.push_back(explanation.job_id);
    return order;
  }
  v1::Waiting WaitingOf(const std::string& id) {
    for (const Explanation& explanation : policy_.Explain(snapshot_)) {
      if (explanation.job_id == id) return explanation.waiting;
    }
    ADD_FAILURE() << id << " is not explained";
    return {};
  }
  // Returns the time until the estimated and latest start; infinite if none.
  absl::Duration StartsIn(const std::string& id) {
    const v1::Waiting waiting = WaitingOf(id);
    if (!waiting.has_estimated_start_time()) return absl::InfiniteDuration();
    return absl::FromUnixSeconds(waiting.estimated_start_time().seconds()) - snapshot_.now;
  }
  absl::Duration StartsWithin(const std::string& id) {
    const v1::Waiting waiting = WaitingOf(id);
    if (!waiting.has_latest_start_time()) return absl::InfiniteDuration();
    return absl::FromUnixSeconds(waiting.latest_start_time().seconds()) - snapshot_.now;
  }

  JobQueue queue_{absl::Hours(6)};
  Snapshot snapshot_;
  const BackfillPolicy policy_;
};

TEST_F(BackfillPolicyTest, AnEmptyQueueWantsNothing) {
  AddDevices(1);
  EXPECT_THAT(Placed(), IsEmpty());
  EXPECT_THAT(Order(), IsEmpty());
}

TEST_F(BackfillPolicyTest, StartsWhatFitsInOrder) {
  AddDevices(3);
  Wait(Job("a", 2));
  Wait(Job("b"));
  Wait(Job("c"));
  EXPECT_THAT(Placed(), ElementsAre("a: cpu:0 cpu:1", "b: cpu:2"));
  EXPECT_EQ(WaitingOf("a").reason(), v1::Waiting::REASON_STARTING);
  EXPECT_EQ(WaitingOf("c").reason(), v1::Waiting::REASON_DEVICES_BUSY);
  EXPECT_EQ(WaitingOf("c").position(), 3);
}

TEST_F(BackfillPolicyTest, PriorityThenUseThenAge) {
  AddDevices(1);
  Hold("x", {0}).user = "carl";
  snapshot_.users["ann"].device_seconds = 1e6;
  snapshot_.users["bob"].device_seconds = 10;
  Wait(Job("old"));
  Wait(Job("young"));
  WaitingJob job = Job("other");
  job.user = "bob";
  Wait(job);
  job = Job("low");
  job.user = "bob";
  job.priority = -1;
  Wait(job);
  job = Job("high");
  job.priority = 1;
  Wait(job);
  EXPECT_THAT(Order(), ElementsAre("high", "other", "old", "young", "low"));
}

TEST_F(BackfillPolicyTest, UsersTakeTurns) {
  AddDevices(1);
  Hold("x", {0}).user = "carl";
  for (const char* id : {"a1", "a2", "a3"}) Wait(Job(id));
  for (const char* id : {"b1", "b2"}) {
    WaitingJob job = Job(id);
    job.user = "bob";
    Wait(job);
  }
  EXPECT_THAT(Order(), ElementsAre("a1", "b1", "a2", "b2", "a3"));
  // Running jobs count as if they had run to their end.
  Hold("y", {}).user = "ann";
  snapshot_.holding.back().devices = {0};
  EXPECT_THAT(Order(), ElementsAre("b1", "a1", "b2", "a2", "a3"));
}

TEST_F(BackfillPolicyTest, WaitingRaisesTheFirstOfAUsersPriority) {
  AddDevices(1);
  Hold("x", {0});
  for (const char* id : {"low", "low2"}) {
    WaitingJob job = Job(id);
    job.priority = -1;
    Wait(job);
  }
  Wait(Job("usual"));
  queue_.RestoreWait({"ann", -1}, snapshot_.now - absl::Hours(13));
  EXPECT_THAT(Order(), ElementsAre("low", "usual", "low2"));
  EXPECT_EQ(policy_.Explain(snapshot_)[0].raised_by, 2);
  EXPECT_EQ(policy_.Explain(snapshot_)[2].raised_by, 0);
  // Its start takes one level back.
  ASSERT_TRUE(queue_.Start("low", snapshot_.now, /*was_longest=*/true));
  EXPECT_THAT(Order(), ElementsAre("low2", "usual"));
  EXPECT_EQ(policy_.Explain(snapshot_)[0].raised_by, 1);
}

// A job that ran meanwhile is the oldest of its group, but has waited for less time than the others.
TEST_F(BackfillPolicyTest, WaitingRaisesTheJobThatHasWaitedLongest) {
  AddDevices(1);
  Hold("x", {0});
  WaitingJob ran = Job("ran");
  ran.create_time -= absl::Hours(1);
  ran.waits_since = snapshot_.now;
  Wait(ran);
  Wait(Job("waited"));
  queue_.RestoreWait({"ann", 0}, snapshot_.now - absl::Hours(7));
  EXPECT_THAT(Order(), ElementsAre("waited", "ran"));
  queue_.NoteWaiting({}, snapshot_.now);
  EXPECT_THAT(Order(), ElementsAre("ran", "waited"));
}

TEST_F(BackfillPolicyTest, ADecisionSaysWhichGroupsWait) {
  AddDevices(2);
  Wait(Job("older"));
  Wait(Job("old"));
  WaitingJob young = Job("young");
  young.user = "bob";
  Wait(young);
  WaitingJob never = Job("never", 7);
  never.user = "carl";
  Wait(never);
  const Decision decision = policy_.Decide(snapshot_);
  ASSERT_EQ(decision.placements.size(), 2);
  EXPECT_EQ(decision.placements[0].job_id, "older");
  EXPECT_TRUE(decision.placements[0].was_longest);
  EXPECT_EQ(decision.placements[1].job_id, "young");
  EXPECT_TRUE(decision.placements[1].was_longest);
  EXPECT_THAT(decision.waiting, ElementsAre(Pair(JobQueue::GroupKey("ann", 0),
                                                 snapshot_.now - absl::Minutes(10) + absl::Seconds(1))));
  snapshot_.users["bob"].device_seconds = 1e6;
  const Decision again = policy_.Decide(snapshot_);
  ASSERT_EQ(again.placements.size(), 2);
  EXPECT_EQ(again.placements[1].job_id, "old");
  EXPECT_FALSE(again.placements[1].was_longest);
  EXPECT_THAT(again.waiting, ElementsAre(Pair(JobQueue::GroupKey("bob", 0), young.waits_since)));
}

// A job that waits for missing devices does not raise its group, and its expected usage does not count as its
// user's.
TEST_F(BackfillPolicyTest, JobsThatCannotRunNeitherRaiseNorDelayTheirUsersOthers) {
  AddDevices(1);
  for (int i = 0; i < 3; ++i) {
    Wait(Job(absl::StrCat("never", i), 7));
  }
  Wait(Job("old"));
  Wait(Job("mine"));
  queue_.RestoreWait({"ann", 0}, snapshot_.now - absl::Hours(13));
  WaitingJob other = Job("other");
  other.user = "bob";
  other.priority = 1;
  Wait(other);
  EXPECT_THAT(Placed(), ElementsAre("old: cpu:0"));
  EXPECT_EQ(policy_.Explain(snapshot_)[0].job_id, "old");
  EXPECT_EQ(policy_.Explain(snapshot_)[0].raised_by, 2);
  ASSERT_TRUE(queue_.Remove("old"));
  ASSERT_TRUE(queue_.Remove("other"));
  queue_.NoteWaiting({}, snapshot_.now);
  other.priority = 0;
  other.create_time = snapshot_.now;
  Wait(other);
  EXPECT_THAT(Placed(), ElementsAre("mine: cpu:0"));
}

// Beyond the reservations, Decide overtakes no job of a higher level, so no start is announced.
TEST_F(BackfillPolicyTest, WhatIsNotToStartIsNotSaidToStart) {
  BackfillPolicy::Options options;
  options.reservations = 1;
  const BackfillPolicy policy(options);
  AddDevices(3);
  Hold("x", {0}, absl::Hours(9));
  for (const auto& [id, priority] : {std::pair("first", 2), std::pair("second", 1)}) {
    WaitingJob job = Job(id, 3);
    job.priority = priority;
    Wait(job);
  }
  Wait(Job("low"));
  ASSERT_THAT(policy.Decide(snapshot_).placements, IsEmpty());
  EXPECT_EQ(policy.Explain(snapshot_).back().waiting.reason(), v1::Waiting::REASON_BEHIND_OTHERS);
}

TEST_F(BackfillPolicyTest, ASmallJobPassesOnlyIfItDelaysNone) {
  AddDevices(3);
  Hold("x", {0}, absl::Hours(2));
  Wait(Job("gang", 3));
  Wait(LimitedJob("long", absl::Hours(3)));
  Wait(UnlimitedJob("unlimited"));
  Wait(LimitedJob("short", absl::Hours(2)));
  EXPECT_THAT(Placed(), ElementsAre("short: cpu:1"));
  EXPECT_EQ(StartsIn("gang"), absl::Hours(2));
  EXPECT_EQ(StartsWithin("gang"), absl::Hours(2));
  EXPECT_EQ(WaitingOf("gang").reason(), v1::Waiting::REASON_DEVICES_BUSY);
  EXPECT_THAT(WaitingOf("gang").message(),
              HasSubstr("Needs 3 CPU devices with 1.00 GiB of memory each; 2 of 3 free."));
  EXPECT_EQ(WaitingOf("long").reason(), v1::Waiting::REASON_BEHIND_OTHERS);
  EXPECT_THAT(WaitingOf("long").message(), HasSubstr("\"jobs/gang\" goes first"));
  EXPECT_EQ(StartsIn("long"), absl::Hours(3));
}

// Estimated run times do not matter.
TEST_F(BackfillPolicyTest, NothingPassesAGangThatWaitsForAJobWithoutALimit) {
  AddDevices(2);
  Hold("x", {0}).latest_end = absl::InfiniteFuture();
  Wait(Job("gang", 2));
  Wait(LimitedJob("small", absl::Seconds(1)));
  EXPECT_THAT(Placed(), IsEmpty());
  EXPECT_EQ(StartsIn("gang"), absl::Hours(1));
  EXPECT_EQ(StartsWithin("gang"), absl::InfiniteDuration());
  snapshot_.holding[0].expected_end = absl::InfiniteFuture();
  EXPECT_THAT(Placed(), IsEmpty());
  EXPECT_EQ(StartsIn("gang"), absl::InfiniteDuration());
}

// The reservation does not move if the job exceeds its estimate.
TEST_F(BackfillPolicyTest, NothingPassesAGangThatShouldHaveItsDevices) {
  AddDevices(2);
  Hold("x", {0}, -absl::Seconds(1));
  Wait(Job("gang", 2));
  Wait(LimitedJob("small", absl::Milliseconds(1)));
  EXPECT_THAT(Placed(), IsEmpty());
  // Its start is unknown now.
  EXPECT_EQ(StartsIn("gang"), absl::InfiniteDuration());
  EXPECT_EQ(StartsWithin("gang"), absl::InfiniteDuration());
  snapshot_.holding[0].ending = true;
  EXPECT_THAT(Placed(), IsEmpty());
  EXPECT_EQ(StartsIn("gang"), absl::ZeroDuration());
}

TEST_F(BackfillPolicyTest, AGangKeepsFreeDevicesBeforeThoseThatAreAboutToBeFree) {
  AddDevices(3);
  Hold("x", {0}).ending = true;
  Hold("y", {1}, -absl::Seconds(1));
  Wait(Job("gang", 2));
  Wait(LimitedJob("small", absl::Seconds(1)));
  EXPECT_THAT(Placed(), IsEmpty());
}

TEST_F(BackfillPolicyTest, TimeLimitsGiveTheLatestStartAndEstimatesTheLikelyOne) {
  AddDevices(2);
  Hold("x", {0}, absl::Hours(10)).expected_end = snapshot_.now + absl::Minutes(30);
  Hold("y", {1}, absl::Hours(2)).expected_end = snapshot_.now + absl::Hours(1);
  Wait(LimitedJob("first", absl::Hours(8)));
  Wait(Job("second"));
  EXPECT_EQ(StartsIn("first"), absl::Minutes(30));
  EXPECT_EQ(StartsWithin("first"), absl::Hours(2));
  EXPECT_EQ(StartsIn("second"), absl::Hours(1));
  EXPECT_EQ(StartsWithin("second"), absl::Hours(10));
}

// An endless stream of jobs that share the device.
TEST_F(BackfillPolicyTest, JobsThatShareADeviceDoNotPassAJobThatWantsItAlone) {
  AddDevices(1);
  HoldingJob& held = Hold("x", {0});
  held.share = 0.5;
  held.latest_end = absl::InfiniteFuture();
  WaitingJob half = UnlimitedJob("half");
  half.share = 0.5;
  Wait(half);
  EXPECT_THAT(Placed(), ElementsAre("half: cpu:0"));
  WaitingJob alone = Job("alone");
  alone.create_time -= absl::Hours(1);
  Wait(alone);
  EXPECT_THAT(Placed(), IsEmpty());
}

TEST_F(BackfillPolicyTest, BehindTheReservationsNothingPassesAHigherPriority) {
  BackfillPolicy::Options options;
  options.reservations = 1;
  const BackfillPolicy policy(options);
  AddDevices(3);
  Hold("x", {0}, absl::Hours(9));
  WaitingJob job = Job("first", 3);
  job.priority = 2;
  Wait(job);
  job = Job("second", 3);
  job.priority = 1;
  Wait(job);
  Wait(Job("low"));
  EXPECT_THAT(policy.Decide(snapshot_).placements, IsEmpty());
  ASSERT_TRUE(queue_.Remove("second"));
  EXPECT_EQ(policy.Decide(snapshot_).placements.size(), 1);
}

TEST_F(BackfillPolicyTest, ReservationsFollowEachOther) {
  AddDevices(2);
  Hold("x", {0}, absl::Minutes(10));
  Hold("y", {1}, absl::Minutes(30));
  Wait(Job("a", 2));
  Wait(Job("b"));
  EXPECT_EQ(StartsIn("a"), absl::Minutes(30));
  EXPECT_EQ(StartsIn("b"), absl::Minutes(90));
}

TEST_F(BackfillPolicyTest, JobsShareADeviceWhereTheyAllowItAndFit) {
  AddDevices(2);
  const auto shared = [&](const std::string& id, double share, int64_t memory) {
    WaitingJob job = Job(id);
    job.share = share;
    job.gang.replica_memory_bytes = memory;
    return job;
  };
  Wait(shared("a", 0.5, kGiB));
  Wait(shared("b", 0.25, 6 * kGiB));
  Wait(shared("c", 0.25, 2 * kGiB));  // too much memory beside a and b
  Wait(shared("d", 0.25, kGiB));
  Wait(Job("alone"));
  EXPECT_THAT(Placed(), ElementsAre("a: cpu:0", "b: cpu:0", "c: cpu:1", "d: cpu:0"));
  EXPECT_EQ(WaitingOf("alone").reason(), v1::Waiting::REASON_DEVICES_BUSY);
}

TEST_F(BackfillPolicyTest, ASharedDeviceIsNotGivenToOneThatWantsItAlone) {
  AddDevices(1);
  Hold("x", {0}).share = 0.25;
  Wait(Job("alone"));
  EXPECT_THAT(Placed(), IsEmpty());
  snapshot_.holding[0].share = 1;
  queue_.Remove("alone");
  WaitingJob job = Job("shares");
  job.share = 0.1;
  Wait(job);
  EXPECT_THAT(Placed(), IsEmpty());
}

TEST_F(BackfillPolicyTest, ASweepHoldsAsManyDevicesAsItMayAndHoldsUpNobodyElse) {
  AddDevices(4);
  Hold("running", {3}).sweep = "sweeps/s";
  for (const char* id : {"a", "b", "c"}) {
    WaitingJob job = Job(id);
    job.sweep = "sweeps/s";
    job.sweep_max_running = 2;
    Wait(job);
  }
  Wait(Job("other"));
  EXPECT_THAT(Placed(), ElementsAre("a: cpu:0", "other: cpu:1"));
  EXPECT_EQ(WaitingOf("a").reason(), v1::Waiting::REASON_STARTING);
  EXPECT_EQ(WaitingOf("b").reason(), v1::Waiting::REASON_SWEEP_LIMIT);
  EXPECT_EQ(WaitingOf("b").message(), "2 of at most 2 jobs of \"sweeps/s\" hold devices.");
}

TEST_F(BackfillPolicyTest, QuotasHoldUpNobodyElse) {
  AddDevices(4);
  snapshot_.users["ann"].max_devices = 2;
  Wait(Job("a", 2));
  Wait(Job("b"));
  WaitingJob job = Job("other");
  job.user = "carl";
  Wait(job);
  EXPECT_THAT(Placed(), ElementsAre("a: cpu:0 cpu:1", "other: cpu:2"));
  EXPECT_EQ(WaitingOf("b").reason(), v1::Waiting::REASON_QUOTA);
  EXPECT_THAT(WaitingOf("b").message(), HasSubstr("\"ann\" holds 2 of at most 2 devices, and it needs 1."));
  EXPECT_THAT(policy_.Decide(snapshot_).waiting, IsEmpty());
}

TEST_F(BackfillPolicyTest, AUsersSmallJobsDoNotPassAGangThatWaitsForTheQuota) {
  AddDevices(4);
  snapshot_.users["ann"].max_devices = 2;
  Hold("x", {0}).user = "ann";
  Wait(Job("never", 3));
  Wait(Job("gang", 2));
  Wait(Job("small"));
  WaitingJob other = Job("other");
  other.user = "carl";
  Wait(other);
  EXPECT_THAT(Placed(), ElementsAre("other: cpu:1"));
  EXPECT_THAT(WaitingOf("gang").message(),
              HasSubstr("\"ann\" holds 1 of at most 2 devices, and it needs 2."));
  EXPECT_EQ(WaitingOf("small").reason(), v1::Waiting::REASON_QUOTA);
  EXPECT_EQ(WaitingOf("small").message(),
            "The quota of \"ann\" is kept for \"jobs/gang\", which is ahead of it.");
  // A wait for the user's own quota raises nothing.
  queue_.RestoreWait({"ann", 0}, snapshot_.now - absl::Hours(13));
  EXPECT_THAT(Placed(), ElementsAre("other: cpu:1"));
  EXPECT_THAT(policy_.Decide(snapshot_).waiting, IsEmpty());
}

TEST_F(BackfillPolicyTest, DevicesOutOfServiceGetNothing) {
  AddDevices(2);
  snapshot_.devices[0].state = v1::DEVICE_STATE_DRAINED;
  Wait(Job("both", 2));
  Wait(Job("three", 3));
  Wait(Job("one"));
  EXPECT_THAT(Placed(), ElementsAre("one: cpu:1"));
  EXPECT_EQ(WaitingOf("both").reason(), v1::Waiting::REASON_DEVICES_OUT_OF_SERVICE);
  EXPECT_THAT(WaitingOf("both").message(), HasSubstr("1 of this daemon's 2 are in service"));
  EXPECT_EQ(WaitingOf("three").reason(), v1::Waiting::REASON_DEVICES_MISSING);
  EXPECT_THAT(WaitingOf("three").message(), HasSubstr("this daemon has 2."));
}

TEST_F(BackfillPolicyTest, NamedDevicesAreTakenInTheirOrder) {
  AddDevices(3);
  WaitingJob job = Job("named", 2);
  job.gang.names = {"devices/cpu:2", "devices/cpu:0"};
  Wait(job);
  EXPECT_THAT(Placed(), ElementsAre("named: cpu:2 cpu:0"));
  Hold("x", {2});
  EXPECT_THAT(Placed(), IsEmpty());
  EXPECT_THAT(WaitingOf("named").message(), HasSubstr("Needs devices/cpu:2 and devices/cpu:0"));
}

TEST_F(BackfillPolicyTest, MemoryAndKindsCount) {
  AddDevices(1, v1::DEVICE_KIND_GPU);
  AddDevices(1, v1::DEVICE_KIND_CPU, 64 * kGiB);
  WaitingJob job = Job("any");
  job.gang.device_kind = v1::DEVICE_KIND_UNSPECIFIED;
  Wait(job);
  job = Job("large");
  job.gang.device_kind = v1::DEVICE_KIND_UNSPECIFIED;
  job.gang.replica_memory_bytes = 32 * kGiB;
  Wait(job);
  EXPECT_THAT(Placed(), ElementsAre("any: gpu:0", "large: cpu:0"));
}

TEST_F(BackfillPolicyTest, AHigherPriorityHasJobsThatAllowItMakeRoom) {
  AddDevices(3);
  Hold("may", {0}).preemptible = true;
  Hold("may-not", {1});
  HoldingJob& newer = Hold("newer", {2});
  newer.preemptible = true;
  newer.lease_time = snapshot_.now;
  WaitingJob job = Job("usual");
  Wait(job);
  EXPECT_THAT(policy_.Decide(snapshot_).preemptions, IsEmpty());
  job = Job("high");
  job.priority = 1;
  Wait(job);
  EXPECT_THAT(policy_.Decide(snapshot_).preemptions, ElementsAre("newer"));
  EXPECT_EQ(WaitingOf("high").reason(), v1::Waiting::REASON_PREEMPTING);
  // While it ends, no other job is told to end.
  snapshot_.holding[2].ending = true;
  EXPECT_THAT(policy_.Decide(snapshot_).preemptions, IsEmpty());
  // If preemption does not suffice, no job is preempted.
  queue_.Remove("high");
  job = Job("gang", 3);
  job.priority = 1;
  Wait(job);
  EXPECT_THAT(policy_.Decide(snapshot_).preemptions, IsEmpty());
}

TEST_F(BackfillPolicyTest, NoMoreJobsMakeRoomThanMust) {
  AddDevices(1);
  const auto hold = [&](const std::string& id, double share, int priority, bool preemptible) {
    HoldingJob& job = Hold(id, {0});
    job.share = share;
    job.priority = priority;
    job.preemptible = preemptible;
  };
  hold("stays", 0.25, 0, false);
  hold("small", 0.125, -2, true);
  hold("enough", 0.375, -1, true);
  hold("above", 0.25, 3, true);
  WaitingJob job = Job("part");
  job.priority = 2;
  job.share = 0.375;
  Wait(job);
  EXPECT_THAT(policy_.Decide(snapshot_).preemptions, ElementsAre("enough"));
  queue_.Remove("part");
  // Ending the job "enough" does not free enough memory, so both end.
  job.gang.replica_memory_bytes = 6 * kGiB;
  Wait(job);
  EXPECT_THAT(policy_.Decide(snapshot_).preemptions, ElementsAre("small", "enough"));
  queue_.Remove("part");
  // A job that stays blocks a job that wants the whole device.
  job.share = 1;
  Wait(job);
  EXPECT_THAT(policy_.Decide(snapshot_).preemptions, IsEmpty());
}

TEST_F(BackfillPolicyTest, WhoseLastProcessIsThereWaitsForItsEnd) {
  AddDevices(2);
  WaitingJob job = Job("again");
  job.is_held_up = true;
  Wait(job);
  Wait(Job("next"));
  EXPECT_THAT(Placed(), ElementsAre("next: cpu:0"));
  EXPECT_EQ(WaitingOf("again").reason(), v1::Waiting::REASON_LAST_ATTEMPT_ENDING);
}

}  // namespace
}  // namespace tandem
