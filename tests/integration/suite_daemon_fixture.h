#ifndef TANDEM_TESTS_INTEGRATION_SUITE_DAEMON_FIXTURE_H_
#define TANDEM_TESTS_INTEGRATION_SUITE_DAEMON_FIXTURE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/integration/cli.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/scratch_folder.h"

namespace tandem::testing {

// Tests that share a real daemon. It starts before the first test and ends after the last. It has two CPU
// devices, and "data" in the scratch folder is a data folder.
class SuiteDaemonFixture : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { StartDaemon({}); }
  static void TearDownTestSuite() {
    delete daemon_;
    delete scratch_;
  }
  // Starts the daemon with additional arguments, which precede its data folder.
  static void StartDaemon(std::vector<std::string> arguments) {
    scratch_ = new ScratchFolder();
    std::filesystem::create_directories(scratch_->File("data"));
    arguments.insert(arguments.end(), {"--data-folder", scratch_->File("data")});
    daemon_ = new DaemonProcess(
        {.state_folder = scratch_->File("state"), .cpu_devices = 2, .extra_arguments = arguments});
    const absl::Status started = daemon_->Start();
    ASSERT_TRUE(started.ok()) << started;
  }

  void SetUp() override {
    ASSERT_TRUE(daemon_->IsRunning());
    cli_.Use(*daemon_);
  }

  static inline ScratchFolder* scratch_ = nullptr;
  static inline DaemonProcess* daemon_ = nullptr;
  Cli cli_{*scratch_};  // Uses the daemon.
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_SUITE_DAEMON_FIXTURE_H_
