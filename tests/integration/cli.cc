#include "tests/integration/cli.h"

#include <optional>

#include "absl/strings/str_cat.h"
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
  environment_["TANDEM_ADDRESS"] = daemon.address();
  environment_["TANDEM_TOKEN_FILE"] = daemon.TokenPath();
}

CliResult Cli::Run(const std::vector<std::string>& arguments, absl::Duration timeout) {
  const std::unique_ptr<CliRun> run = Start(arguments);
  return run == nullptr ? CliResult() : run->Finish(timeout);
}

std::unique_ptr<CliRun> Cli::Start(const std::vector<std::string>& arguments) {
  const std::string stem = scratch_.File(absl::StrCat("cli-", ++runs_));
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

std::string Cli::FindJobName(const std::string& text) {
  const size_t begin = text.find("jobs/");
  if (begin == std::string::npos) return "";
  const size_t end =
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", begin + 5);
  std::string name = text.substr(begin, end == std::string::npos ? end : end - begin);
  // It may end a sentence.
  while (name.back() == '.') name.pop_back();
  return name;
}

}  // namespace tandem::testing
