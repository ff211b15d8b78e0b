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

// A test of a real daemon on a folder of its own, started before the test's body, to which things happen at
// random moments.
class DaemonFixture : public ::testing::Test {
 protected:
  // `seed` is of all that is random, and printed, so that it can be had again; 0: another one each time.
  DaemonFixture(int64_t seed, int cpu_devices, std::vector<std::string> extra_arguments = {});
  void SetUp() override;

  // From `low` to `high`, both included.
  int Random(int low, int high);

  ScratchFolder scratch_;
  DaemonProcess daemon_;

 private:
  std::mt19937_64 random_;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_DAEMON_FIXTURE_H_
