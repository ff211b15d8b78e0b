#include "engine/backends/device_factory.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(DeviceFactoryTest, OpensByKind) {
  const auto cpu = OpenDevice("devices/cpu:1");
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_EQ((*cpu)->name(), "cpu:1");
  EXPECT_EQ((*cpu)->dtype(), DType::kFloat32);
  const auto reference = OpenDevice("reference:0");
  ASSERT_TRUE(reference.ok()) << reference.status();
  EXPECT_EQ((*reference)->dtype(), DType::kFloat64);
}

TEST(DeviceFactoryTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(OpenDevice("abacus:0").status().code(), absl::StatusCode::kUnimplemented);
  for (const char* name : {"", "cpu", "cpu:", "cpu:x", "cpu:-1", "devices/"}) {
    EXPECT_EQ(OpenDevice(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST(DeviceFactoryTest, SaysWhyThereIsNoGpu) {
  const auto gpu = OpenDevice("devices/gpu:0");
  if (gpu.ok()) {
    EXPECT_EQ((*gpu)->name(), "gpu:0");
    return;
  }
  // The program is built without CUDA, or the machine has no driver or GPU.
  EXPECT_TRUE(absl::IsUnimplemented(gpu.status()) || absl::IsUnavailable(gpu.status())) << gpu.status();
  EXPECT_THAT(std::string(gpu.status().message()), testing::ContainsRegex("CUDA|cuda"));
}

}  // namespace
}  // namespace tandem
