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

// The result of a run of `tandem`.
struct CliResult {
  // 128 plus the signal if a signal ended the run. -1 if its deadline passed and it was killed.
  int exit_code = -1;
  std::string out;
  std::string err;
};

// Prints the whole result, for messages of failed expectations.
std::ostream& operator<<(std::ostream& stream, const CliResult& result);

// A run of `tandem` in the background.
class CliRun {
 public:
  CliRun(std::unique_ptr<Subprocess> process, std::string out_path, std::string err_path)
      : process_(std::move(process)), out_path_(std::move(out_path)), err_path_(std::move(err_path)) {}

  // Returns its stdout so far.
  std::string Out() const { return ReadFile(out_path_); }
  std::string Err() const { return ReadFile(err_path_); }
  void Signal(int signal) { process_->Signal(signal); }
  bool IsRunning() { return process_->IsRunning(); }
  // Waits for its end. Kills it at the deadline.
  CliResult Finish(absl::Duration timeout = absl::Seconds(120));

 private:
  std::unique_ptr<Subprocess> process_;
  const std::string out_path_;
  const std::string err_path_;
};

// Runs `tandem` against a daemon as a user would, by its command line and environment only. Not thread-safe.
class Cli {
 public:
  // Files of runs are in the scratch folder. Runs have no address and no token before Use.
  explicit Cli(const ScratchFolder& scratch) : scratch_(scratch) {}

  // Gives later runs the address and the token of a daemon that has been ready. The daemon must outlive all
  // calls of Train.
  void Use(const DaemonProcess& daemon);

  CliResult Run(const std::vector<std::string>& arguments, absl::Duration timeout = absl::Seconds(120));
  std::unique_ptr<CliRun> Start(const std::vector<std::string>& arguments);

  // Submits a job file of this content, follows the job and expects its success. Returns the job
  // "jobs/<id>".
  std::string Train(const std::string& yaml, const std::vector<std::string>& more_arguments = {});

  // Returns the job "jobs/<id>" from the output of `submit`, or "".
  static std::string SubmittedJob(const CliResult& result);

  // Sets an environment variable of later runs.
  void SetEnvironment(const std::string& name, const std::string& value) { environment_[name] = value; }

 private:
  const ScratchFolder& scratch_;
  std::map<std::string, std::string> environment_;
  const DaemonProcess* daemon_ = nullptr;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_CLI_H_
