#include "server/scheduler/inventory.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

std::vector<v1::Device> MakeCpus(int count) {
  std::vector<v1::Device> devices(count);
  for (int i = 0; i < count; ++i) devices[i].set_name(absl::StrCat("devices/cpu:", i));
  return devices;
}

Lease Alone(std::vector<std::string> devices) { return {.devices = std::move(devices)}; }

TEST(InventoryTest, GivesAllOrNone) {
  Inventory inventory(MakeCpus(3));
  ASSERT_TRUE(inventory.Acquire("a", Alone({"devices/cpu:2", "devices/cpu:0"})).ok());
  EXPECT_EQ(inventory.Acquire("b", Alone({"devices/cpu:1", "devices/cpu:0"})).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(inventory.Acquire("b", Alone({"devices/cpu:1", "devices/cpu:9"})).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(inventory.Acquire("b", Alone({"devices/cpu:1", "devices/cpu:1"})).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(inventory.Acquire("b", Alone({})).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(inventory.Acquire("a", Alone({"devices/cpu:1"})).code(), absl::StatusCode::kFailedPrecondition);
  auto devices = inventory.Devices();
  EXPECT_EQ(devices[0].job(), "jobs/a");
  EXPECT_EQ(devices[1].job(), "");
  EXPECT_EQ(devices[2].job(), "jobs/a");
  EXPECT_TRUE(inventory.Acquire("b", Alone({"devices/cpu:1"})).ok());
  EXPECT_EQ(inventory.Release("a"), (std::vector<std::string>{"devices/cpu:0", "devices/cpu:2"}));
  EXPECT_TRUE(inventory.Release("a").empty());
  devices = inventory.Devices();
  EXPECT_EQ(devices[0].job(), "");
  EXPECT_EQ(devices[1].job(), "jobs/b");
}

TEST(InventoryTest, JobsShareADeviceAsFarAsItGoes) {
  std::vector<v1::Device> devices = MakeCpus(1);
  devices[0].set_memory_bytes(100);
  Inventory inventory(devices);
  const auto lease = [](double share, int64_t memory) { return Lease{{"devices/cpu:0"}, share, memory}; };
  EXPECT_EQ(inventory.Acquire("a", lease(0, 1)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(inventory.Acquire("a", lease(1.5, 1)).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(inventory.Acquire("a", lease(0.5, 60)).ok());
  EXPECT_EQ(inventory.Acquire("b", lease(0.6, 10)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(inventory.Acquire("b", lease(0.5, 50)).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(inventory.Acquire("b", lease(0.5, 40)).ok());
  v1::Device device = inventory.Devices()[0];
  EXPECT_EQ(device.job(), "jobs/a");
  EXPECT_EQ(device.jobs_size(), 2);
  EXPECT_EQ(device.leased_share(), 1);
  EXPECT_EQ(device.leased_memory_bytes(), 100);
  inventory.Release("a");
  device = inventory.Devices()[0];
  EXPECT_EQ(device.job(), "jobs/b");
  EXPECT_EQ(device.leased_share(), 0.5);
}

TEST(InventoryTest, DevicesHaveAState) {
  Inventory inventory(MakeCpus(2));
  EXPECT_EQ(inventory.Devices()[0].state(), v1::DEVICE_STATE_ACTIVE);
  const absl::StatusOr<v1::Device> drained =
      inventory.SetState("devices/cpu:1", v1::DEVICE_STATE_DRAINED, "a new disk", 1);
  ASSERT_TRUE(drained.ok()) << drained.status();
  EXPECT_EQ(drained->state_message(), "a new disk");
  EXPECT_EQ(inventory.Devices()[1].faults(), 1);
  const absl::Status unknown = inventory.SetState("devices/gpu:0", v1::DEVICE_STATE_DRAINED, "", 0).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(unknown.message().find("devices/cpu:0, devices/cpu:1"), absl::string_view::npos);
}

// Compares random leases with a model: devices are never double-booked, and a refused lease takes nothing.
TEST(InventoryTest, LeasesNeverOverlap) {
  constexpr int kDevices = 6;
  for (int seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Inventory inventory(MakeCpus(kDevices));
    std::map<std::string, std::set<std::string>> model;
    for (int step = 0; step < 500; ++step) {
      const std::string job = absl::StrCat("j", random() % 5);
      if (random() % 3 == 0) {
        EXPECT_EQ(!inventory.Release(job).empty(), model.erase(job) > 0);
      } else {
        std::vector<std::string> wanted;
        for (int i = 0; i < kDevices; ++i) {
          if (random() % 3 == 0) wanted.push_back(absl::StrCat("devices/cpu:", i));
        }
        std::shuffle(wanted.begin(), wanted.end(), random);
        bool possible = !wanted.empty() && model.count(job) == 0;
        for (const auto& [holder, held] : model) {
          for (const std::string& device : wanted) possible = possible && held.count(device) == 0;
        }
        ASSERT_EQ(inventory.Acquire(job, Alone(wanted)).ok(), possible);
        if (possible) model[job] = {wanted.begin(), wanted.end()};
      }
      for (const v1::Device& device : inventory.Devices()) {
        std::string holder;
        for (const auto& [job_id, held] : model) {
          if (held.count(device.name()) > 0) holder = "jobs/" + job_id;
        }
        ASSERT_EQ(device.job(), holder);
      }
    }
  }
}

// Threads take and return overlapping gangs. Each lease must be exclusive.
TEST(InventoryTest, LeasesNeverOverlapAmongThreads) {
  constexpr int kDevices = 4;
  Inventory inventory(MakeCpus(kDevices));
  std::atomic<int> holders[kDevices] = {};
  std::atomic<int> overlaps = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      const std::string job = absl::StrCat("j", t);
      for (int step = 0; step < 2000; ++step) {
        const int first = static_cast<int>(random() % kDevices);
        const int second = (first + 1) % kDevices;
        if (!inventory
                 .Acquire(job,
                          Alone({absl::StrCat("devices/cpu:", first), absl::StrCat("devices/cpu:", second)}))
                 .ok()) {
          continue;
        }
        if (++holders[first] != 1 || ++holders[second] != 1) ++overlaps;
        --holders[first];
        --holders[second];
        inventory.Release(job);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(overlaps, 0);
}

TEST(InventoryTest, AGpuIsKnownByItsUuid) {
  std::vector<v1::Device> devices(2);
  devices[0].set_name("devices/cpu:0");
  devices[1].set_name("devices/gpu:0");
  devices[1].mutable_gpu()->set_uuid("GPU-a");
  const Inventory inventory(devices);
  EXPECT_EQ(inventory.IdentityOf("devices/cpu:0"), "devices/cpu:0");
  EXPECT_EQ(inventory.IdentityOf("devices/gpu:0"), "GPU-a");
  EXPECT_EQ(inventory.IdentityOf("devices/gpu:1"), "devices/gpu:1");
}

}  // namespace
}  // namespace tandem
