#include "tests/integration/cli.h"

#include <atomic>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tests/integration/programs.h"

namespace tandem::testing {

std::ostream& operator<<(std::ostream& stream, const CliResult& result) {
  return stream << "exit code " << result.exit_code << "\nstdout:\n"
                << result.out << "\nstderr:\n"
                << result.err;
}

CliResult CliRun::Finish(absl::Duration timeout) {
  CliResult result;
  const std::optional<int> code = process_->Wait(timeout);
  if (code.has_value()) {
    result.exit_code = *code;
  } else {
    process_->Kill();
  }
  result.out = Out();
  result.err = Err();
  return result;
}

void Cli::Use(const DaemonProcess& daemon) {
  daemon_ = &daemon;
  environment_["TANDEM_ADDRESS"] = daemon.address();
  environment_["TANDEM_TOKEN_FILE"] = daemon.TokenPath();
}

CliResult Cli::Run(const std::vector<std::string>& arguments, absl::Duration timeout) {
  const std::unique_ptr<CliRun> run = Start(arguments);
  return run == nullptr ? CliResult() : run->Finish(timeout);
}

std::unique_ptr<CliRun> Cli::Start(const std::vector<std::string>& arguments) {
  static std::atomic<int> runs = 0;
  const std::string stem = scratch_.File(absl::StrCat("cli-", ++runs));
  Subprocess::Options options;
  options.arguments = {CliProgram()};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  options.environment = environment_;
  options.stdout_path = stem + ".out";
  options.stderr_path = stem + ".err";
  absl::StatusOr<std::unique_ptr<Subprocess>> process = Subprocess::Start(options);
  if (!process.ok()) {
    ADD_FAILURE() << process.status();
    return nullptr;
  }
  return std::make_unique<CliRun>(*std::move(process), options.stdout_path, options.stderr_path);
}

std::string Cli::Train(const std::string& yaml, const std::vector<std::string>& more_arguments) {
  std::vector<std::string> arguments = {"submit", scratch_.Write("job.yaml", yaml), "--follow"};
  arguments.insert(arguments.end(), more_arguments.begin(), more_arguments.end());
  const CliResult result = Run(arguments, absl::Minutes(4));
  EXPECT_EQ(result.exit_code, 0) << result << (daemon_ == nullptr ? "" : daemon_->Log());
  return SubmittedJob(result);
}

std::string Cli::SubmittedJob(const CliResult& result) {
  constexpr absl::string_view kSaid = "submitted ";
  const size_t found = result.out.find(kSaid.data());
  if (found == std::string::npos) return "";
  const size_t begin = found + kSaid.size();
  return "jobs/" + result.out.substr(begin, result.out.find('\n', begin) - begin);
}

}  // namespace tandem::testing
