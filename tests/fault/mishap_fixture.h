#ifndef TANDEM_TESTS_FAULT_MISHAP_FIXTURE_H_
#define TANDEM_TESTS_FAULT_MISHAP_FIXTURE_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/integration/daemon_fixture.h"

namespace tandem::testing {

// A test that does things to a real daemon at random moments.
class MishapFixture : public DaemonFixture {
 protected:
  // `seed` is the seed of all random choices. The test prints it, so that a run can be repeated. 0: a new
  // seed each time.
  MishapFixture(int64_t seed, int cpu_devices, std::vector<std::string> extra_arguments = {});

  // Returns a number from `low` to `high`, both included.
  int Random(int low, int high);

 private:
  std::mt19937_64 random_;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_MISHAP_FIXTURE_H_
