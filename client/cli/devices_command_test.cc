#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/app_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DevicesCommandTest : public AppFixture {
 protected:
  DevicesCommandTest() {
    daemon_.list_devices = [this](v1::ListDevicesResponse* response) {
      v1::Device& cpu = *response->add_devices();
      cpu.set_name("devices/cpu:0");
      cpu.set_kind(v1::DEVICE_KIND_CPU);
      cpu.set_memory_bytes(8'000'000'000);
      cpu.set_threads(2);
      cpu.add_precisions(v1::PRECISION_FLOAT32);
      v1::Device& gpu = *response->add_devices();
      gpu.set_name("devices/gpu:0");
      gpu.set_kind(v1::DEVICE_KIND_GPU);
      gpu.set_model("NVIDIA H200");
      gpu.set_memory_bytes(148'600'000'000);
      gpu.set_state(v1::DEVICE_STATE_EXCLUDED);
      gpu.set_state_message("Its driver reported XID 94.");
      gpu.set_faults(1);
      gpu.add_precisions(v1::PRECISION_FLOAT32);
      gpu.add_precisions(v1::PRECISION_BFLOAT16);
      v1::GpuStatus& status = *gpu.mutable_gpu();
      status.set_uuid("GPU-8932f937");
      status.set_compute_capability("9.0");
      status.set_used_memory_bytes(2'000'000'000);
      status.set_power_watts(126.5);
      status.set_power_limit_watts(700);
      status.set_ecc_corrected_errors(3);
      status.set_ecc_uncorrected_errors(1);
      status.mutable_last_error()->set_xid(94);
      status.mutable_last_error()->set_message("The GPU's memory had an error.");
      status.mutable_last_error()->mutable_time()->set_seconds(absl::ToUnixSeconds(terminal_.Now()) - 180);
      v1::GpuLink& near = *status.add_links();
      near.set_device("devices/gpu:1");
      near.set_path(v1::GpuLink::PATH_NUMA_NODE);
      near.set_nvlinks(18);
      near.set_peer_access(true);
      v1::GpuLink& far = *status.add_links();
      far.set_device("devices/gpu:2");
      far.set_path(v1::GpuLink::PATH_SYSTEM);
      return grpc::Status::OK;
    };
  }
};

TEST_F(DevicesCommandTest, ShowsAllThatIsKnown) {
  EXPECT_EQ(RunCommand({"devices", "show", "gpu:0", "devices/cpu:0"}, terminal_), 0) << terminal_.err();
  EXPECT_EQ("\n" + terminal_.out(), R"(
device       gpu:0
kind         gpu
model        NVIDIA H200
job          excluded
message      Its driver reported XID 94.
faults       1
memory       148.6 GB for jobs, 2.0 GB in use
precisions   float32, bfloat16
capability   9.0
uuid         GPU-8932f937
power        127 W of 700 W
ecc errors   3 corrected, 1 not corrected
last error   XID 94, 3 min ago: The GPU's memory had an error.
to gpu:1     18 NVLinks, peer access; on the same NUMA node
to gpu:2     no peer access; across NUMA nodes

device       cpu:0
kind         cpu
job          free
memory       8.0 GB for jobs
threads      2
precisions   float32
)");
}

TEST_F(DevicesCommandTest, TheListTellsOfErrors) {
  EXPECT_EQ(RunCommand({"devices"}, terminal_), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("\ngpu:0  XID 94, 3 min ago: The GPU's memory had an error.\n"));
}

TEST_F(DevicesCommandTest, ADeviceThatIsNotThereIsNamed) {
  EXPECT_NE(RunCommand({"devices", "show", "gpu:7"}, terminal_), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("cannot find the device \"gpu:7\"; the daemon has cpu:0, gpu:0"));
}

TEST_F(DevicesCommandTest, ADeviceAsJsonHasEveryField) {
  EXPECT_EQ(RunCommand({"devices", "show", "gpu:0", "-o", "json"}, terminal_), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("\"GPU-8932f937\""));
}

TEST_F(DevicesCommandTest, TheListAsJsonHasDevicesAndPartitions) {
  EXPECT_EQ(RunCommand({"devices", "-o", "json"}, terminal_), 0) << terminal_.err();
  nlohmann::json listed = nlohmann::json::parse(terminal_.out());
  EXPECT_EQ(listed["devices"].size(), 2);
  EXPECT_EQ(listed["devices"][1]["gpu"]["uuid"], "GPU-8932f937");
  EXPECT_FALSE(listed.contains("partitions"));

  daemon_.list_devices = [](v1::ListDevicesResponse* response) {
    response->add_devices()->set_name("devices/cpu:0");
    v1::ClusterPartition& work = *response->add_partitions();
    work.set_name("work");
    work.set_is_default(true);
    work.set_is_up(true);
    work.set_nodes(4);
    work.set_free_nodes(3);
    work.set_gpus_per_node(2);
    return grpc::Status::OK;
  };
  FakeTerminal with_cluster;
  with_cluster.environment = terminal_.environment;
  EXPECT_EQ(RunCommand({"devices", "-o", "json"}, with_cluster), 0) << with_cluster.err();
  listed = nlohmann::json::parse(with_cluster.out());
  EXPECT_EQ(listed["devices"].size(), 1);
  EXPECT_EQ(listed["partitions"],
            nlohmann::json::parse(R"([{"name": "work", "is_default": true, "is_up": true,
      "nodes": 4, "free_nodes": 3, "gpus_per_node": 2}])"));

  daemon_.list_devices = [](v1::ListDevicesResponse* response) {
    response->set_partitions_message("cannot ask Slurm");
    return grpc::Status::OK;
  };
  FakeTerminal yaml;
  yaml.environment = terminal_.environment;
  EXPECT_EQ(RunCommand({"devices", "-o", "yaml"}, yaml), 0) << yaml.err();
  EXPECT_THAT(yaml.out(), HasSubstr("partitions_message: cannot ask Slurm\n"));
}

TEST_F(DevicesCommandTest, DevicesLeaveServiceAndComeBack) {
  std::vector<std::string> calls;
  const auto change = [&](const auto& request, v1::DeviceState state, v1::Device* device) -> grpc::Status {
    if (request.name() == "devices/cpu:9") return {grpc::StatusCode::NOT_FOUND, "no device cpu:9"};
    calls.push_back(request.ShortDebugString());
    device->set_name(request.name());
    device->set_state(state);
    if (state == v1::DEVICE_STATE_DRAINED) device->add_jobs("jobs/lenet-1");
    return grpc::Status::OK;
  };
  daemon_.drain_device = [&](const v1::DrainDeviceRequest& request, v1::Device* device) {
    return change(request, v1::DEVICE_STATE_DRAINED, device);
  };
  daemon_.exclude_device = [&](const v1::ExcludeDeviceRequest& request, v1::Device* device) {
    return change(request, v1::DEVICE_STATE_EXCLUDED, device);
  };
  daemon_.resume_device = [&](const v1::ResumeDeviceRequest& request, v1::Device* device) {
    return change(request, v1::DEVICE_STATE_ACTIVE, device);
  };
  // One wrong name does not keep the others in service.
  EXPECT_NE(RunCommand({"devices", "drain", "cpu:9", "cpu:0", "--reason", "a new fan"}, terminal_), 0);
  EXPECT_THAT(terminal_.err(), HasSubstr("no device cpu:9"));
  EXPECT_EQ(RunCommand({"devices", "exclude", "devices/gpu:0"}, terminal_), 0) << terminal_.err();
  EXPECT_EQ(RunCommand({"devices", "resume", "cpu:0"}, terminal_), 0) << terminal_.err();
  EXPECT_THAT(calls, ElementsAre("name: \"devices/cpu:0\" reason: \"a new fan\"", "name: \"devices/gpu:0\"",
                                 "name: \"devices/cpu:0\""));
  EXPECT_EQ(terminal_.out(), "cpu:0 lenet-1 (drained)\ngpu:0 excluded\ncpu:0 free\n");
  EXPECT_EQ(RunCommand({"devices", "resume", "cpu:0", "-o", "json"}, terminal_), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("\"DEVICE_STATE_ACTIVE\""));
}

TEST_F(DevicesCommandTest, PathsBetweenGpusAreNamed) {
  const std::vector<std::pair<v1::GpuLink::Path, std::string>> paths = {
      {v1::GpuLink::PATH_SAME_BOARD, "; on the same board"},
      {v1::GpuLink::PATH_PCIE_SWITCH, "; over a PCIe switch"},
      {v1::GpuLink::PATH_PCIE_SWITCHES, "; over several PCIe switches"},
      {v1::GpuLink::PATH_HOST_BRIDGE, "; over a host bridge"},
      {v1::GpuLink::PATH_UNSPECIFIED, ""}};
  daemon_.list_devices = [&](v1::ListDevicesResponse* response) {
    v1::Device& gpu = *response->add_devices();
    gpu.set_name("devices/gpu:0");
    gpu.set_kind(v1::DEVICE_KIND_GPU);
    gpu.mutable_gpu()->set_utilization_percent(97);
    gpu.mutable_gpu()->set_temperature_celsius(65);
    for (size_t i = 0; i < paths.size(); ++i) {
      v1::GpuLink& link = *gpu.mutable_gpu()->add_links();
      link.set_device("devices/gpu:" + std::to_string(i + 1));
      link.set_path(paths[i].first);
      link.set_nvlinks(1);
    }
    return grpc::Status::OK;
  };
  EXPECT_EQ(RunCommand({"devices", "show", "gpu:0"}, terminal_), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("\nbusy         97%\ntemperature  65 C\n"));
  for (const auto& [path, text] : paths) {
    EXPECT_THAT(terminal_.out(), HasSubstr("  1 NVLink, no peer access" + text + "\n")) << path;
  }
}

}  // namespace
}  // namespace tandem::cli
