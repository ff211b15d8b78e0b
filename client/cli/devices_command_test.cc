#include <stdlib.h>

#include <filesystem>
#include <string>

#include "client/cli/app.h"
#include "client/cli/fake_terminal.h"
#include "client/lib/fake_daemon.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;

class DevicesCommandTest : public ::testing::Test {
 protected:
  DevicesCommandTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-devices-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    terminal_.environment["XDG_STATE_HOME"] = folder_;
    terminal_.environment["TANDEM_ADDRESS"] = daemon_.address();
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
  ~DevicesCommandTest() override { std::filesystem::remove_all(folder_); }

  FakeTerminal terminal_;
  client::FakeDaemon daemon_;
  std::string folder_;
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
  EXPECT_THAT(terminal_.err(), HasSubstr("there is no device \"gpu:7\"; the daemon has cpu:0, gpu:0"));
}

}  // namespace
}  // namespace tandem::cli
