#include "tests/fault/daemon_fixture.h"

#include <iostream>
#include <utility>

#include "absl/status/status.h"

namespace tandem::testing {

DaemonFixture::DaemonFixture(int64_t seed, int cpu_devices, std::vector<std::string> extra_arguments)
    : daemon_({.state_folder = scratch_.File("state"),
               .cpu_devices = cpu_devices,
               .extra_arguments = std::move(extra_arguments)}) {
  if (seed == 0) seed = std::random_device()();
  random_.seed(seed);
  std::cout << "What happens when follows --seed=" << seed << "\n";
}

void DaemonFixture::SetUp() {
  const absl::Status started = daemon_.Start();
  ASSERT_TRUE(started.ok()) << started;
}

int DaemonFixture::Random(int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random_);
}

}  // namespace tandem::testing
