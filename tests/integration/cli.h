#ifndef TANDEM_TESTS_INTEGRATION_CLI_H_
#define TANDEM_TESTS_INTEGRATION_CLI_H_

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/scratch_folder.h"
#include "tests/integration/subprocess.h"

namespace tandem::testing {

// How a run of `tandem` ended.
struct CliResult {
  // 128 plus the signal where a signal ended it; -1 where it had to be killed at its deadline.
  int exit_code = -1;
  std::string out;
  std::string err;
};

// All of it, for messages of failed expectations.
std::ostream& operator<<(std::ostream& stream, const CliResult& result);

// A run of `tandem` that goes on while the test does other things.
class CliRun {
 public:
  CliRun(std::unique_ptr<Subprocess> process, std::string out_path, std::string err_path)
      : process_(std::move(process)), out_path_(std::move(out_path)), err_path_(std::move(err_path)) {}

  // What it wrote to stdout so far.
  std::string Out() const { return ReadFile(out_path_); }
  std::string Err() const { return ReadFile(err_path_); }
  void Signal(int signal) { process_->Signal(signal); }
  bool IsRunning() { return process_->IsRunning(); }
  // Waits for its end; kills it at the deadline.
  CliResult Finish(absl::Duration timeout = absl::Seconds(120));

 private:
  std::unique_ptr<Subprocess> process_;
  const std::string out_path_;
  const std::string err_path_;
};

// Runs `tandem` against a daemon as a person would: all that it knows stands on its command line and in its
// environment. Not thread-safe.
class Cli {
 public:
  // Files of runs go into the scratch folder. No address or token is given.
  explicit Cli(const ScratchFolder& scratch) : scratch_(scratch) {}

  // Gives the runs that follow the address and the token of a daemon that has been ready.
  void Use(const DaemonProcess& daemon);

  CliResult Run(const std::vector<std::string>& arguments, absl::Duration timeout = absl::Seconds(120));
  std::unique_ptr<CliRun> Start(const std::vector<std::string>& arguments);

  // The job, "jobs/<id>", that a run of `submit` says it submitted; "" where it says none.
  static std::string SubmittedJob(const CliResult& result);

  // Set in the environment of the runs that follow.
  void SetEnvironment(const std::string& name, const std::string& value) { environment_[name] = value; }

 private:
  const ScratchFolder& scratch_;
  std::map<std::string, std::string> environment_;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_CLI_H_
