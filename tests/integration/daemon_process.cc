#include "tests/integration/daemon_process.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tandem/v1/daemon_service.grpc.pb.h"
#include "tests/integration/processes.h"
#include "tests/integration/programs.h"

namespace tandem::testing {

absl::Status DaemonProcess::Launch() {
  const std::string address_file = absl::StrCat(options_.state_folder, "/address");
  std::error_code error;
  // The one before may have been killed and left it.
  std::filesystem::remove(address_file, error);
  Subprocess::Options options;
  options.arguments = {DaemonProgram(),
                       "--state-folder",
                       options_.state_folder,
                       "--listen",
                       address_.empty() ? "127.0.0.1:0" : address_,
                       "--cpu-devices",
                       absl::StrCat(options_.cpu_devices)};
  options.arguments.insert(options.arguments.end(), options_.extra_arguments.begin(),
                           options_.extra_arguments.end());
  // These tests are of CPUs.
  options.environment["CUDA_VISIBLE_DEVICES"] = "";
  for (const auto& [name, value] : options_.environment) options.environment[name] = value;
  options.stdout_path = LogPath();
  options.stderr_path = LogPath();
  absl::StatusOr<std::unique_ptr<Subprocess>> process = Subprocess::Start(options);
  if (!process.ok()) return process.status();
  process_ = *std::move(process);
  return absl::OkStatus();
}

absl::Status DaemonProcess::WaitUntilReady(absl::Duration timeout) {
  const std::string address_file = absl::StrCat(options_.state_folder, "/address");
  const absl::Time deadline = absl::Now() + timeout;
  std::string address;
  const auto has_address = [&] {
    const std::string content = ReadFile(address_file);
    // It is whole when its line is.
    if (!content.empty() && content.back() == '\n')
      address = std::string(absl::StripAsciiWhitespace(content));
    return !address.empty() || !IsRunning();
  };
  WaitUntil(has_address, timeout);
  if (address.empty()) {
    const absl::string_view why = IsRunning() ? "gave no address in time" : "ended at its start";
    return absl::UnavailableError(absl::StrCat("the daemon ", why, ":\n", Log()));
  }
  address_ = address;
  const auto stub = v1::DaemonService::NewStub(NewChannel());
  grpc::Status status;
  const auto answers = [&] {
    grpc::ClientContext context;
    Prepare(context, absl::Seconds(5));
    context.set_wait_for_ready(true);
    v1::Daemon daemon;
    status = stub->GetDaemon(&context, v1::GetDaemonRequest(), &daemon);
    return status.ok() || !IsRunning();
  };
  if (WaitUntil(answers, deadline - absl::Now()) && status.ok()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the daemon does not answer: ", status.error_message(), "\n", Log()));
}

absl::Status DaemonProcess::Start() {
  absl::Status status = Launch();
  return status.ok() ? WaitUntilReady() : status;
}

void DaemonProcess::Kill() {
  if (process_ != nullptr) process_->Kill();
}

std::optional<int> DaemonProcess::Terminate(absl::Duration timeout) {
  process_->Signal(SIGTERM);
  return process_->Wait(timeout);
}

std::string DaemonProcess::Token() const {
  return std::string(absl::StripAsciiWhitespace(ReadFile(TokenPath())));
}

std::string DaemonProcess::Log() const { return ReadFile(LogPath()); }

std::shared_ptr<grpc::Channel> DaemonProcess::NewChannel() const {
  grpc::ChannelArguments arguments;
  // No connection is shared with another channel, and a restarted daemon is found again at once.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // Despite its name, the time that one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 250);
  return grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments);
}

void DaemonProcess::Prepare(grpc::ClientContext& context, absl::Duration timeout,
                            const std::string& token) const {
  context.AddMetadata("authorization", absl::StrCat("Bearer ", token.empty() ? Token() : token));
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(timeout));
}

std::vector<pid_t> DaemonProcess::Workers() const {
  return FindProcesses("tandem-worker", options_.state_folder);
}

std::vector<pid_t> DaemonProcess::Processes() const {
  std::vector<pid_t> all = FindProcesses("tandemd", options_.state_folder);
  for (const char* program : {"tandem-worker", "tandem"}) {
    const std::vector<pid_t> more = FindProcesses(program, options_.state_folder);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

DaemonRun RunDaemon(const ScratchFolder& scratch, std::vector<std::string> arguments) {
  static std::atomic<int> runs = 0;
  const std::string output = scratch.File(absl::StrCat("tandemd-", ++runs));
  arguments.insert(arguments.begin(), DaemonProgram());
  const absl::StatusOr<std::unique_ptr<Subprocess>> process =
      Subprocess::Start({.arguments = std::move(arguments), .stdout_path = output, .stderr_path = output});
  EXPECT_TRUE(process.ok()) << process.status();
  if (!process.ok()) return {};
  const std::optional<int> exit_code = (*process)->Wait(absl::Minutes(1));
  return {exit_code, ReadFile(output)};
}

}  // namespace tandem::testing
