#include "server/workers/worker_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/match.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

v1::Device OfKind(v1::DeviceKind kind) {
  v1::Device device;
  device.set_kind(kind);
  return device;
}

std::vector<std::string> WhatCudaSees(const v1::Device& device) {
  std::vector<std::string> found;
  for (const std::string& variable : WorkerEnvironment({device}, "", {"GPU-b", "GPU-a"})) {
    if (absl::StartsWith(variable, "CUDA_VISIBLE_DEVICES")) found.push_back(variable);
  }
  return found;
}

TEST(WorkerEnvironmentTest, GpusAreNumberedAsDevicesAre) {
  // The daemon's own, which it has read.
  setenv("CUDA_VISIBLE_DEVICES", "3,1", /*overwrite=*/1);
  EXPECT_THAT(WhatCudaSees(OfKind(v1::DEVICE_KIND_GPU)), ElementsAre("CUDA_VISIBLE_DEVICES=GPU-b,GPU-a"));
  EXPECT_THAT(WhatCudaSees(OfKind(v1::DEVICE_KIND_CPU)), ElementsAre("CUDA_VISIBLE_DEVICES="));
}

}  // namespace
}  // namespace tandem
