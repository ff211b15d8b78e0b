#include "server/scheduler/machine_devices.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/scheduler/host_resources.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

HostResources Host(int cores) { return {.cores = cores, .cpu_model = "A CPU", .memory_bytes = 1000}; }

TEST(MachineDevicesTest, OneDeviceACoreByDefault) {
  const auto devices = MakeDevices({}, Host(3));
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 3U);
  for (int i = 0; i < 3; ++i) {
    const v1::Device& device = (*devices)[i];
    EXPECT_EQ(device.name(), "devices/cpu:" + std::to_string(i));
    EXPECT_EQ(device.kind(), v1::DEVICE_KIND_CPU);
    EXPECT_EQ(device.index(), i);
    EXPECT_EQ(device.model(), "A CPU");
    EXPECT_EQ(device.threads(), 1);
    EXPECT_EQ(device.memory_bytes(), 300);
    EXPECT_TRUE(device.job().empty());
    EXPECT_THAT(device.precisions(), ElementsAre(v1::PRECISION_FLOAT32));
  }
}

TEST(MachineDevicesTest, BFloat16IsOfferedWhereTheProcessorHasIt) {
  HostResources host = Host(1);
  host.bfloat16 = true;
  const auto devices = MakeDevices({.reference_devices = 1}, host);
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_THAT((*devices)[0].precisions(), ElementsAre(v1::PRECISION_FLOAT32, v1::PRECISION_BFLOAT16));
  EXPECT_THAT((*devices)[1].precisions(), ElementsAre(v1::PRECISION_FLOAT64));
}

TEST(MachineDevicesTest, GpusHaveTheirOwnMemory) {
  HostResources host = Host(1);
  host.gpus.resize(2);
  host.gpus[0].model = "NVIDIA H200";
  host.gpus[0].status.set_uuid("GPU-a");
  host.gpus[0].status.set_total_memory_bytes(int64_t{100} << 30);
  host.gpus[1].status.set_total_memory_bytes(int64_t{10} << 30);
  const auto devices = MakeDevices({.reference_devices = 1}, host);
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 4U);
  EXPECT_EQ((*devices)[0].memory_bytes(), 450) << "half of nine tenths: GPUs take none of it";
  const v1::Device& gpu = (*devices)[1];
  EXPECT_EQ(gpu.name(), "devices/gpu:0");
  EXPECT_EQ(gpu.kind(), v1::DEVICE_KIND_GPU);
  EXPECT_EQ(gpu.model(), "NVIDIA H200");
  EXPECT_EQ(gpu.gpu().uuid(), "GPU-a");
  EXPECT_EQ(gpu.threads(), 0);
  EXPECT_EQ(gpu.memory_bytes(), int64_t{98} << 30);
  EXPECT_THAT(gpu.precisions(),
              ElementsAre(v1::PRECISION_FLOAT32, v1::PRECISION_BFLOAT16, v1::PRECISION_FLOAT16));
  EXPECT_EQ((*devices)[2].name(), "devices/gpu:1");
  EXPECT_EQ((*devices)[2].memory_bytes(), int64_t{9} << 30);
  EXPECT_EQ((*devices)[3].name(), "devices/reference:0");
}

TEST(MachineDevicesTest, CoresAndMemoryAreSplit) {
  const auto devices = MakeDevices({.cpu_devices = 2, .reference_devices = 1, .memory_bytes = 600}, Host(9));
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 3U);
  EXPECT_EQ((*devices)[0].threads(), 4);
  EXPECT_EQ((*devices)[1].memory_bytes(), 200);
  EXPECT_EQ((*devices)[2].name(), "devices/reference:0");
  EXPECT_EQ((*devices)[2].kind(), v1::DEVICE_KIND_REFERENCE);
  EXPECT_EQ((*devices)[2].threads(), 1);
  EXPECT_THAT((*devices)[2].precisions(), ElementsAre(v1::PRECISION_FLOAT64));
}

TEST(MachineDevicesTest, MoreDevicesThanCoresHaveAThreadEach) {
  const auto devices = MakeDevices({.cpu_devices = 4}, Host(2));
  ASSERT_TRUE(devices.ok());
  ASSERT_EQ(devices->size(), 4U);
  EXPECT_EQ((*devices)[3].threads(), 1);
  EXPECT_EQ((*MakeDevices({.cpu_devices = 1, .cpu_threads = 7}, Host(2)))[0].threads(), 7);
}

TEST(MachineDevicesTest, RefusesWhatIsNoCountAndNamesTheFlag) {
  const std::vector<std::pair<std::string, DeviceOptions>> bad = {
      {"--cpu-devices is -1;", {.cpu_devices = -1}},
      {"--threads-per-cpu-device is -1;", {.cpu_threads = -1}},
      {"--reference-devices is 5000;", {.reference_devices = 5000}},
      {"--memory is -1 bytes;", {.memory_bytes = -1}},
      {"--memory is 1001 bytes;", {.memory_bytes = 1001}}};
  for (const auto& [message, options] : bad) {
    const absl::Status status = MakeDevices(options, Host(2)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message().substr(0, message.size()), message);
  }
}

TEST(HostResourcesTest, ThisMachineHasSomething) {
  const HostResources host = ProbeHost();
  EXPECT_GE(host.cores, 1);
  EXPECT_GT(host.memory_bytes, int64_t{64} << 20);
}

}  // namespace
}  // namespace tandem
