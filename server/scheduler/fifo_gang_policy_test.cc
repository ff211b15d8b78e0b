#include "server/scheduler/fifo_gang_policy.h"

#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::Device MakeDevice(v1::DeviceKind kind, int index, const std::string& holder = "") {
  v1::Device device;
  device.set_name(absl::StrCat("devices/", kind == v1::DEVICE_KIND_CPU ? "cpu" : "other", ":", index));
  device.set_kind(kind);
  device.set_index(index);
  device.set_memory_bytes(100);
  if (!holder.empty()) device.set_job("jobs/" + holder);
  return device;
}

std::vector<v1::Device> Cpus(int free, int held = 0) {
  std::vector<v1::Device> devices;
  for (int i = 0; i < held; ++i) devices.push_back(MakeDevice(v1::DEVICE_KIND_CPU, i, "holder"));
  for (int i = held; i < held + free; ++i) devices.push_back(MakeDevice(v1::DEVICE_KIND_CPU, i));
  return devices;
}

WaitingJob Job(const std::string& id, int replicas, v1::DeviceKind kind = v1::DEVICE_KIND_CPU,
               int64_t memory = 0) {
  return {.id = id, .replicas = replicas, .device_kind = kind, .memory_bytes = memory};
}

Decision Decide(std::vector<v1::Device> devices, std::vector<WaitingJob> queue) {
  return FifoGangPolicy().Decide({.devices = std::move(devices), .queue = std::move(queue)});
}

TEST(FifoGangPolicyTest, PlacesWhatFitsInOrder) {
  const Decision decision = Decide(Cpus(3), {Job("a", 1), Job("b", 2), Job("c", 1)});
  ASSERT_THAT(decision.placements, SizeIs(2));
  EXPECT_EQ(decision.placements[0].job_id, "a");
  EXPECT_THAT(decision.placements[0].devices, ElementsAre("devices/cpu:0"));
  EXPECT_THAT(decision.placements[1].devices, ElementsAre("devices/cpu:1", "devices/cpu:2"));
  ASSERT_THAT(decision.waiting, SizeIs(1));
  EXPECT_EQ(decision.waiting.at("c").reason(), v1::Waiting::REASON_DEVICES_BUSY);
  EXPECT_EQ(decision.waiting.at("c").position(), 1);
}

TEST(FifoGangPolicyTest, NoOneOvertakes) {
  const Decision decision = Decide(Cpus(1, 2), {Job("a", 2), Job("b", 1), Job("c", 1)});
  EXPECT_THAT(decision.placements, IsEmpty());
  EXPECT_EQ(decision.waiting.at("a").reason(), v1::Waiting::REASON_DEVICES_BUSY);
  EXPECT_EQ(decision.waiting.at("a").message(), "Needs 2 CPU devices; 1 of 3 free.");
  EXPECT_EQ(decision.waiting.at("b").reason(), v1::Waiting::REASON_BEHIND_OTHERS);
  EXPECT_THAT(decision.waiting.at("b").message(), HasSubstr("\"jobs/a\" goes first"));
  EXPECT_EQ(decision.waiting.at("b").position(), 2);
  EXPECT_EQ(decision.waiting.at("c").position(), 3);
}

TEST(FifoGangPolicyTest, WhatCanNeverRunHoldsUpNoOne) {
  const Decision decision = Decide(Cpus(2), {Job("a", 3), Job("b", 1, v1::DEVICE_KIND_CPU, 101),
                                             Job("c", 1, v1::DEVICE_KIND_REFERENCE), Job("d", 2)});
  ASSERT_THAT(decision.placements, SizeIs(1));
  EXPECT_EQ(decision.placements[0].job_id, "d");
  for (const char* id : {"a", "b", "c"}) {
    EXPECT_EQ(decision.waiting.at(id).reason(), v1::Waiting::REASON_DEVICES_MISSING) << id;
  }
  EXPECT_EQ(decision.waiting.at("a").message(), "Needs 3 CPU devices; this daemon has 2.");
}

TEST(FifoGangPolicyTest, WithoutAKindGpusComeFirstWhereThereAreEnough) {
  std::vector<v1::Device> devices = Cpus(2);
  devices.push_back(MakeDevice(v1::DEVICE_KIND_REFERENCE, 0));
  devices.push_back(MakeDevice(v1::DEVICE_KIND_GPU, 1, "holder"));
  Decision decision = Decide(devices, {Job("a", 2, v1::DEVICE_KIND_UNSPECIFIED)});
  ASSERT_THAT(decision.placements, SizeIs(1));
  EXPECT_THAT(decision.placements[0].devices, ElementsAre("devices/cpu:0", "devices/cpu:1"));
  decision = Decide(devices, {Job("a", 1, v1::DEVICE_KIND_UNSPECIFIED)});
  EXPECT_EQ(decision.waiting.at("a").reason(), v1::Waiting::REASON_DEVICES_BUSY);
  EXPECT_EQ(Decide(Cpus(1), {Job("a", 2, v1::DEVICE_KIND_UNSPECIFIED)}).waiting.at("a").reason(),
            v1::Waiting::REASON_DEVICES_MISSING);
}

// Whatever the snapshot: every job is placed or waits; placements are free, fit and do not overlap; no job
// that could run some time is overtaken; and the same snapshot gives the same decision.
TEST(FifoGangPolicyTest, PropertiesOfRandomSnapshots) {
  constexpr v1::DeviceKind kKinds[] = {v1::DEVICE_KIND_CPU, v1::DEVICE_KIND_GPU, v1::DEVICE_KIND_REFERENCE,
                                       v1::DEVICE_KIND_UNSPECIFIED};
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Snapshot snapshot;
    std::map<std::string, const v1::Device*> by_name;
    const int devices = static_cast<int>(random() % 7);
    for (int i = 0; i < devices; ++i) {
      snapshot.devices.push_back(MakeDevice(kKinds[random() % 3], i, random() % 3 == 0 ? "holder" : ""));
      snapshot.devices.back().set_memory_bytes(random() % 100);
    }
    for (const v1::Device& device : snapshot.devices) by_name[device.name()] = &device;
    const int jobs = static_cast<int>(random() % 6);
    for (int i = 0; i < jobs; ++i) {
      snapshot.queue.push_back(
          Job(absl::StrCat("j", i), 1 + static_cast<int>(random() % 3), kKinds[random() % 4], random() % 60));
    }
    const Decision decision = FifoGangPolicy().Decide(snapshot);
    std::map<std::string, const Placement*> placed;
    for (const Placement& placement : decision.placements) placed[placement.job_id] = &placement;
    std::set<std::string> used;
    bool blocked = false;
    int position = 0;
    for (const WaitingJob& job : snapshot.queue) {
      ASSERT_NE(placed.count(job.id), decision.waiting.count(job.id));
      if (placed.count(job.id) == 0) {
        EXPECT_EQ(decision.waiting.at(job.id).position(), ++position);
        if (decision.waiting.at(job.id).reason() != v1::Waiting::REASON_DEVICES_MISSING) blocked = true;
        continue;
      }
      EXPECT_FALSE(blocked);
      ASSERT_EQ(static_cast<int>(placed[job.id]->devices.size()), job.replicas);
      for (const std::string& name : placed[job.id]->devices) {
        EXPECT_TRUE(used.insert(name).second) << name;
        const v1::Device& device = *by_name.at(name);
        EXPECT_TRUE(device.job().empty());
        EXPECT_GE(device.memory_bytes(), job.memory_bytes);
        if (job.device_kind != v1::DEVICE_KIND_UNSPECIFIED) {
          EXPECT_EQ(device.kind(), job.device_kind);
        } else {
          EXPECT_NE(device.kind(), v1::DEVICE_KIND_REFERENCE);
        }
      }
    }
    const Decision again = FifoGangPolicy().Decide(snapshot);
    ASSERT_EQ(again.placements.size(), decision.placements.size());
    for (size_t i = 0; i < again.placements.size(); ++i) {
      EXPECT_EQ(again.placements[i].devices, decision.placements[i].devices);
    }
  }
}

}  // namespace
}  // namespace tandem
