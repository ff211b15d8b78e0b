#ifndef TANDEM_TESTS_FAULT_DAEMON_FIXTURE_H_
#define TANDEM_TESTS_FAULT_DAEMON_FIXTURE_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/scratch_folder.h"

namespace tandem::testing {

// A test of a real daemon on its own folder. The daemon starts before the test's body. The test does things
// to the daemon at random moments.
class DaemonFixture : public ::testing::Test {
 protected:
  // `seed` is the seed of all random choices. The test prints it, so that a run can be repeated. 0: a new
  // seed each time.
  DaemonFixture(int64_t seed, int cpu_devices, std::vector<std::string> extra_arguments = {});
  void SetUp() override;

  // Returns a number from `low` to `high`, both included.
  int Random(int low, int high);

  ScratchFolder scratch_;
  DaemonProcess daemon_;

 private:
  std::mt19937_64 random_;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_DAEMON_FIXTURE_H_
