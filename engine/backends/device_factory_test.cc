#include "engine/backends/device_factory.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(DeviceFactoryTest, OpensByKind) {
  const auto cpu = OpenDevice("devices/cpu:1", 1);
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_EQ((*cpu)->name(), "cpu:1");
  EXPECT_EQ((*cpu)->dtype(), DType::kFloat32);
  const auto reference = OpenDevice("reference:0", 0);
  ASSERT_TRUE(reference.ok()) << reference.status();
  EXPECT_EQ((*reference)->dtype(), DType::kFloat64);
}

TEST(DeviceFactoryTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(OpenDevice("abacus:0", 1).status().code(), absl::StatusCode::kUnimplemented);
  const absl::Status gpu = OpenDevice("devices/gpu:0", 1).status();
  EXPECT_EQ(gpu.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(gpu.message()), testing::HasSubstr("CUDA"));
  for (const char* name : {"", "cpu", "cpu:", "cpu:x", "cpu:-1", "devices/"}) {
    EXPECT_EQ(OpenDevice(name, 1).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

}  // namespace
}  // namespace tandem
