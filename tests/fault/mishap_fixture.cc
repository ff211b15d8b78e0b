#include "tests/fault/mishap_fixture.h"

#include <iostream>
#include <utility>

namespace tandem::testing {

MishapFixture::MishapFixture(int64_t seed, int cpu_devices, std::vector<std::string> extra_arguments)
    : DaemonFixture(cpu_devices, std::move(extra_arguments)) {
  if (seed == 0) seed = std::random_device()();
  random_.seed(seed);
  std::cout << "What happens when follows --seed=" << seed << "\n";
}

int MishapFixture::Random(int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random_);
}

}  // namespace tandem::testing
