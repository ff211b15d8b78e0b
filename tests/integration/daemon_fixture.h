#ifndef TANDEM_TESTS_INTEGRATION_DAEMON_FIXTURE_H_
#define TANDEM_TESTS_INTEGRATION_DAEMON_FIXTURE_H_

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/integration/cli.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/scratch_folder.h"

namespace tandem::testing {

// A test of a real daemon on its own folder. The daemon starts before the test's body.
class DaemonFixture : public ::testing::Test {
 protected:
  explicit DaemonFixture(int cpu_devices = 2, std::vector<std::string> extra_arguments = {})
      : daemon_({.state_folder = scratch_.File("state"),
                 .cpu_devices = cpu_devices,
                 .extra_arguments = std::move(extra_arguments)}) {}

  void SetUp() override {
    const absl::Status started = daemon_.Start();
    ASSERT_TRUE(started.ok()) << started;
    cli_.Use(daemon_);
  }

  // Returns the content of the job's model, or "" if the job has none.
  std::string ModelOf(const std::string& job) const {
    return ReadFile(daemon_.JobFolder(job) + "/model.safetensors");
  }

  ScratchFolder scratch_;
  DaemonProcess daemon_;
  Cli cli_{scratch_};  // Uses the daemon.
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_DAEMON_FIXTURE_H_
