// tandemd: see server/daemon/options.cc for what it can be told.

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cstdio>
#include <string>
#include <vector>

#include "engine/base/version.h"
#include "server/daemon/daemon.h"
#include "server/daemon/logging.h"
#include "server/daemon/options.h"
#include "server/daemon/stop_signals.h"
#include "server/rpc/lifecycle.h"

namespace tandem {
namespace {

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
  // What jobs are about is nobody else's business.
  umask(077);
  SetUpLogging(parsed->options.log_level, parsed->options.log_format);
  Lifecycle lifecycle;
  const StopSignals signals([&lifecycle](const char* name) {
    spdlog::info("stopping signal={}", name);
    lifecycle.Stop();
  });

  absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(parsed->options, &lifecycle);
  if (!daemon.ok()) {
    std::fprintf(stderr, "tandemd: %s\n", std::string(daemon.status().message()).c_str());
    return 1;
  }
  spdlog::info("ready version={} address={} state={}", kVersion, (*daemon)->address(),
               (*daemon)->state_folder());
  std::printf("tandemd is ready: address %s, state folder %s, token file %s\n", (*daemon)->address().c_str(),
              (*daemon)->state_folder().c_str(), (*daemon)->token_file().c_str());
  std::fflush(stdout);

  lifecycle.WaitForStop();
  (*daemon)->Stop();
  spdlog::info("stopped");
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::Main(std::vector<std::string>(argv + 1, argv + argc)); }
