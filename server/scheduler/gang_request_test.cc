#include "server/scheduler/gang_request.h"

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

GangRequest Request(const std::string& replicas) {
  v1::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(replicas, job.mutable_spec()->mutable_replicas()))
      << replicas;
  job.set_planned_memory_bytes(100);
  return GangRequestOf(job);
}

TEST(GangRequestTest, ACountOfDevices) {
  const GangRequest gang = Request("count: 3 device_kind: DEVICE_KIND_GPU");
  EXPECT_EQ(gang.device_kind, v1::DEVICE_KIND_GPU);
  EXPECT_EQ(gang.devices, 3);
  EXPECT_EQ(gang.replicas, 3);
  EXPECT_EQ(gang.memory_bytes(), 100);
  EXPECT_THAT(gang.names, IsEmpty());
}

TEST(GangRequestTest, SeveralReplicasOnADevice) {
  const GangRequest gang = Request("count: 5 replicas_per_device: 2");
  EXPECT_EQ(gang.devices, 3);
  EXPECT_EQ(gang.memory_bytes(), 200);
  EXPECT_THAT(DevicesOfRanks(gang, {"a", "b", "c"}), ElementsAre("a", "b", "c", "a", "b"));
}

// Each worker has a block of ranks and should have as few devices as possible.
TEST(GangRequestTest, SeveralWorkersDoNotShareWhatTheyNeedNotShare) {
  EXPECT_THAT(DevicesOfRanks(Request("count: 4 replicas_per_device: 2 workers: 2"), {"a", "b"}),
              ElementsAre("a", "a", "b", "b"));
  EXPECT_THAT(DevicesOfRanks(Request("count: 4 workers: 2"), {"a", "b", "c", "d"}),
              ElementsAre("a", "b", "c", "d"));
  const GangRequest uneven = Request("count: 6 replicas_per_device: 2 workers: 2");
  EXPECT_THAT(DevicesOfRanks(uneven, {"a", "b", "c"}), ElementsAre("a", "a", "b", "b", "c", "c"));
  // No device has more replicas than its planned memory allows.
  const GangRequest odd = Request("count: 9 replicas_per_device: 4 workers: 3");
  EXPECT_EQ(odd.memory_bytes(), 300);
  EXPECT_THAT(DevicesOfRanks(odd, {"a", "b", "c"}), ElementsAre("a", "a", "a", "b", "b", "b", "c", "c", "c"));
}

TEST(GangRequestTest, NamedDevicesAndMoreReplicas) {
  const GangRequest gang = Request("count: 3 devices: ['devices/cpu:2', 'devices/cpu:0']");
  EXPECT_EQ(gang.devices, 2);
  EXPECT_THAT(gang.names, ElementsAre("devices/cpu:2", "devices/cpu:0"));
  EXPECT_EQ(gang.memory_bytes(), 200);
}

TEST(GangRequestTest, WhoIsOfNoLoadNeedsNoDevice) {
  GangRequest gang = Request("count: 3 worker_load: [1, 0, 0.5]");
  EXPECT_EQ(gang.devices, 2);
  EXPECT_EQ(gang.replicas, 2);
  gang = Request(
      "count: 3 worker_load: [1, 0, 0.5] devices: ['devices/cpu:0', 'devices/cpu:1', 'devices/cpu:2']");
  EXPECT_THAT(gang.names, ElementsAre("devices/cpu:0", "devices/cpu:2"));
  EXPECT_EQ(gang.devices, 2);
  // The second device has two of four replicas, neither with a load.
  gang = Request("count: 4 worker_load: [1, 0, 1, 0] devices: ['devices/cpu:0', 'devices/cpu:1']");
  EXPECT_THAT(gang.names, ElementsAre("devices/cpu:0"));
  EXPECT_EQ(gang.replicas, 2);
  EXPECT_EQ(gang.memory_bytes(), 200);
}

}  // namespace
}  // namespace tandem
