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
  // The device of replica `index`, from 0.
  std::function<std::unique_ptr<Device>(int index)> make;
  // The oracle, or any device to compare with.
  std::function<std::unique_ptr<Device>()> make_reference;
  // How far a result may be off, as a part of the largest magnitude in the oracle's.
  double tolerance;
  // Whether Variables::View gives memory that the host can read.
  bool host_memory = true;
};

inline void PrintTo(const DeviceMaker& maker, std::ostream* out) { *out << ToString(maker.backend); }

// What every backend must do. A test links :device_conformance and says
//   INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformance, testing::Values(DeviceMaker{...}));
class DeviceConformance : public testing::TestWithParam<DeviceMaker> {};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_DEVICE_CONFORMANCE_H_
