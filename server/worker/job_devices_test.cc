#include "server/worker/job_devices.h"

#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(JobDevicesTest, DevicesComputeAsTheJobSays) {
  v1::JobSpec spec;
  EXPECT_EQ(DeviceOptionsOf(spec).compute, DType::kFloat32);
  EXPECT_FALSE(DeviceOptionsOf(spec).allow_tf32);
  EXPECT_FALSE(DeviceOptionsOf(spec).deterministic);
  spec.mutable_training()->set_precision(v1::PRECISION_BFLOAT16);
  spec.mutable_training()->set_allow_tf32(true);
  spec.mutable_training()->set_deterministic(true);
  spec.mutable_gpu()->set_memory_limit_bytes(1);
  spec.mutable_gpu()->set_workspace_limit_bytes(2);
  spec.mutable_gpu()->set_max_threads_per_block(3);
  spec.mutable_gpu()->set_max_blocks(4);
  const DeviceOptions options = DeviceOptionsOf(spec);
  EXPECT_EQ(options.compute, DType::kBFloat16);
  EXPECT_TRUE(options.allow_tf32);
  EXPECT_TRUE(options.deterministic);
  EXPECT_EQ(options.memory_limit_bytes, 1);
  EXPECT_EQ(options.workspace_limit_bytes, 2);
  EXPECT_EQ(options.max_threads_per_block, 3);
  EXPECT_EQ(options.max_blocks, 4);
}

TEST(JobDevicesTest, CountsTheReplicasOnADevice) {
  v1::JobSpec spec;
  EXPECT_EQ(DeviceOptionsOf(spec).replicas_per_device, 1);
  spec.mutable_replicas()->set_count(4);
  spec.mutable_replicas()->set_replicas_per_device(2);
  EXPECT_EQ(DeviceOptionsOf(spec).replicas_per_device, 2);
  spec.mutable_replicas()->set_count(5);
  for (const char* device : {"gpu:0", "gpu:1"}) spec.mutable_replicas()->add_devices(device);
  spec.mutable_replicas()->clear_replicas_per_device();
  EXPECT_EQ(DeviceOptionsOf(spec).replicas_per_device, 3);
}

TEST(JobDevicesTest, OpensADevice) {
  v1::Device device;
  device.set_name("devices/cpu:0");
  device.set_threads(1);
  const auto opened = DevicesFor(v1::JobSpec())(device);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->name(), "cpu:0");
}

}  // namespace
}  // namespace tandem
