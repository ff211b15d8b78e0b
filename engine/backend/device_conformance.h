#ifndef TANDEM_ENGINE_BACKEND_DEVICE_CONFORMANCE_H_
#define TANDEM_ENGINE_BACKEND_DEVICE_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <ostream>

#include "engine/backend/device.h"
#include "engine/backend/op_table.h"
#include "gtest/gtest.h"

namespace tandem {

// Makes devices for DeviceConformance.
struct DeviceMaker {
  BackendKind backend;
  // Returns the device of replica `index`, from 0.
  std::function<std::unique_ptr<Device>(int index)> make;
  // Returns the oracle or another device for comparison.
  std::function<std::unique_ptr<Device>()> make_reference;
  // The largest error, relative to the largest magnitude in the oracle's result.
  double tolerance;
  // Whether the host can read the memory of Variables::View.
  bool host_memory = true;
};

inline void PrintTo(const DeviceMaker& maker, std::ostream* out) { *out << ToString(maker.backend); }

// The tests that every backend must pass. A test links :device_conformance and instantiates them:
//
//   INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformance, testing::Values(DeviceMaker{...}));
class DeviceConformance : public testing::TestWithParam<DeviceMaker> {};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_DEVICE_CONFORMANCE_H_
