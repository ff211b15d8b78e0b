#include "server/workers/leased_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

v1::Device Gpu(int index, const std::string& uuid) {
  v1::Device device;
  device.set_name(absl::StrCat("devices/gpu:", index));
  device.mutable_gpu()->set_uuid(uuid);
  return device;
}

TEST(LeasedGpusTest, AreKnownByTheirUuids) {
  v1::Job job;
  job.set_folder(::testing::TempDir() + "/leased");
  job.set_attempt(2);
  for (const char* name : {"devices/gpu:1", "devices/gpu:0", "devices/gpu:1"}) job.add_devices(name);
  const std::vector<v1::Device> devices = {Gpu(0, "GPU-b"), Gpu(1, "GPU-c")};

  v1::Job same = job;
  RenameLeasedGpus(devices, &same);
  EXPECT_THAT(same.devices(), ElementsAre("devices/gpu:1", "devices/gpu:0", "devices/gpu:1"))
      << "nothing says which they are";

  std::filesystem::create_directories(job.folder() + "/attempt-2");
  std::ofstream(job.folder() + "/attempt-2/launch.textproto")
      << "devices { name: 'devices/gpu:1' gpu { uuid: 'GPU-b' } }"
      << "devices { name: 'devices/gpu:0' gpu { uuid: 'GPU-a' } }"
      << "devices { name: 'devices/gpu:1' gpu { uuid: 'GPU-b' } }";
  RenameLeasedGpus(devices, &job);
  EXPECT_THAT(job.devices(), ElementsAre("devices/gpu:0", "devices/GPU-a", "devices/gpu:0"));

  v1::Job cpu;
  cpu.add_devices("devices/cpu:0");
  RenameLeasedGpus(devices, &cpu);
  EXPECT_THAT(cpu.devices(), ElementsAre("devices/cpu:0"));
}

}  // namespace
}  // namespace tandem
