#include "tests/integration/programs.h"

#include <cstdlib>
#include <filesystem>

namespace tandem::testing {
namespace {

std::string Program(const char* path) {
  const char* folder = std::getenv("TANDEM_BIN_DIR");
  return (std::filesystem::absolute(folder == nullptr ? "." : folder) / path).string();
}

}  // namespace

std::string DaemonProgram() { return Program("server/daemon/tandemd"); }
std::string WorkerProgram() { return Program("server/worker/tandem-worker"); }
std::string CliProgram() { return Program("client/cli/tandem"); }

bool RunsWhole() {
  const char* whole = std::getenv("TANDEM_WHOLE");
  return whole != nullptr && std::string(whole) == "1";
}

}  // namespace tandem::testing
