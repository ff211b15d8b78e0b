#include "server/worker/gpu_topology.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

v1::Device Gpu(const std::string& name) {
  v1::Device device;
  device.set_name(name);
  return device;
}

void Link(v1::Device* device, const std::string& other, v1::GpuLink::Path path, int nvlinks, bool peer) {
  v1::GpuLink& link = *device->mutable_gpu()->add_links();
  link.set_device(other);
  link.set_path(path);
  link.set_nvlinks(nvlinks);
  link.set_peer_access(peer);
}

TEST(GpuTopologyTest, NamesEachPairOfTheJobsOnce) {
  v1::Device first = Gpu("devices/gpu:0"), second = Gpu("devices/gpu:2");
  Link(&first, "devices/gpu:1", v1::GpuLink::PATH_SAME_BOARD, 1, true);
  Link(&first, "devices/gpu:2", v1::GpuLink::PATH_NUMA_NODE, 18, true);
  Link(&second, "devices/gpu:0", v1::GpuLink::PATH_NUMA_NODE, 18, true);
  EXPECT_EQ(DescribeGpuTopology({first, first, second}),
            "gpu:0 and gpu:2: 18 NVLinks, peer access, numa node");
  v1::Device third = Gpu("devices/gpu:3");
  Link(&second, "devices/gpu:3", v1::GpuLink::PATH_UNSPECIFIED, 0, false);
  EXPECT_EQ(DescribeGpuTopology({first, second, third}),
            "gpu:0 and gpu:2: 18 NVLinks, peer access, numa node; gpu:2 and gpu:3: no peer access");
  EXPECT_EQ(DescribeGpuTopology({first, first}), "");
  EXPECT_EQ(DescribeGpuTopology({Gpu("devices/cpu:0"), Gpu("devices/cpu:1")}), "");
}

}  // namespace
}  // namespace tandem
