// tandemd. server/daemon/options.cc has its options.

#include <sys/stat.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/crash_report.h"
#include "engine/base/deadlock_checks.h"
#include "engine/base/standard_files.h"
#include "engine/base/version.h"
#include "server/daemon/address_space.h"
#include "server/daemon/begin_anew.h"
#include "server/daemon/check.h"
#include "server/daemon/daemon.h"
#include "server/daemon/file_limit.h"
#include "server/daemon/logging.h"
#include "server/daemon/memory_return.h"
#include "server/daemon/options.h"
#include "server/daemon/restoration.h"
#include "server/daemon/service_manager.h"
#include "server/daemon/stop_deadline.h"
#include "server/daemon/stop_signals.h"
#include "server/rpc/lifecycle.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

// A stopping daemon must end within 5 seconds, unless it saves the content of a removed database.
constexpr absl::Duration kStopLimit = absl::Milliseconds(4500);

// Prints a line for each check. Returns the exit status.
int PrintChecks(const std::vector<Check>& checks, const DaemonOptions& options) {
  int problems = 0;
  for (const Check& check : checks) {
    const char* const sign = check.verdict == Check::Verdict::kFine      ? "ok     "
                             : check.verdict == Check::Verdict::kWarning ? "warning"
                                                                         : "PROBLEM";
    if (check.verdict == Check::Verdict::kProblem) ++problems;
    std::printf("%s  %s: %s\n", sign, check.subject.c_str(), check.message.c_str());
  }
  std::printf("%s\n", ConclusionOf(checks, options).c_str());
  return problems == 0 ? 0 : 1;
}

int Main(const std::vector<std::string>& arguments) {
  const absl::StatusOr<ParsedOptions> parsed = ParseDaemonOptions(arguments);
  if (!parsed.ok()) {
    std::fprintf(stderr, "tandemd: %s\nTry tandemd --help.\n",
                 std::string(parsed.status().message()).c_str());
    return 2;
  }
  if (!parsed->text.empty()) {
    std::fputs(parsed->text.c_str(), stdout);
    return 0;
  }
  // Other users of the machine must not read jobs.
  umask(077);
  RaiseFileLimit();
  if (const absl::Status status = CheckAddressSpace(); !status.ok()) {
    std::fprintf(stderr, "tandemd: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  if (parsed->check) return PrintChecks(CheckDaemon(parsed->options), parsed->options);
  if (parsed->begin_anew || !parsed->options.restore_backup.empty()) {
    const absl::StatusOr<std::string> done =
        parsed->begin_anew ? BeginAnew(parsed->options.state_folder) : RestoreAsAsked(parsed->options);
    if (!done.ok()) {
      std::fprintf(stderr, "tandemd: %s\n", std::string(done.status().message()).c_str());
      return 1;
    }
    std::fputs(done->c_str(), stdout);
    return 0;
  }
  const ServiceManager service_manager = ServiceManager::FromEnvironment();
  SetUpLogging(parsed->options.log_level, parsed->options.log_format);
  Lifecycle lifecycle;
  const StopSignals signals([&lifecycle](const char* name) {
    spdlog::info("stopping signal={}", name);
    lifecycle.Stop();
  });

  absl::StatusOr<std::unique_ptr<Daemon>> daemon =
      Daemon::Start(parsed->options, &lifecycle, &service_manager);
  if (!daemon.ok()) {
    std::fprintf(stderr, "tandemd: %s\n", std::string(daemon.status().message()).c_str());
    return 1;
  }
  spdlog::info("ready version={} address={} state={}", kVersion, (*daemon)->address(),
               (*daemon)->state_folder());
  if (const ListenAddress* metrics = (*daemon)->metrics_address(); metrics != nullptr) {
    spdlog::info("serves metrics address={}", metrics->ToString());
  }
  service_manager.Ready(absl::StrCat("serves on ", (*daemon)->address()));
  std::printf("tandemd is ready: address %s, state folder %s, token file %s\n", (*daemon)->address().c_str(),
              (*daemon)->state_folder().c_str(), (*daemon)->token_file().c_str());
  std::fflush(stdout);

  const MemoryReturn memory;
  lifecycle.WaitForStop();
  service_manager.Stopping();
  const auto exit_status = [&] { return (*daemon)->is_damaged() ? 1 : 0; };
  {
    const auto must_wait = [&] {
      if (!(*daemon)->is_saving()) return false;
      service_manager.ExtendStop(kStopLimit);
      return true;
    };
    const StopDeadline deadline(kStopLimit, must_wait, exit_status);
    (*daemon)->Stop();
  }
  spdlog::info("stopped");
  return exit_status();
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  tandem::OpenClosedStandardFiles();
  tandem::TurnOffDeadlockChecks();
  tandem::InstallCrashReports(argv[0]);
  return tandem::Main(std::vector<std::string>(argv + 1, argv + argc));
}
