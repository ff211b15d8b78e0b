#include "tests/integration/processes.h"

#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/integration/scratch_folder.h"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;

bool IsZombie(const fs::path& folder) {
  // "pid (name) state …"; a name may hold anything.
  const std::string stat = ReadFile(folder / "stat");
  const size_t end = stat.rfind(')');
  return end == std::string::npos || end + 2 >= stat.size() || stat[end + 2] == 'Z' || stat[end + 2] == 'X';
}

}  // namespace

std::vector<pid_t> FindProcesses(absl::string_view program, absl::string_view folder) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) || pid == getpid()) continue;
    if (IsZombie(entry.path())) continue;
    if (!program.empty()) {
      std::string exe = fs::read_symlink(entry.path() / "exe", error).string();
      exe = exe.substr(0, exe.find(" (deleted)"));
      if (error || fs::path(exe).filename().string() != program) continue;
    }
    const std::string mentions =
        absl::StrCat(ReadFile(entry.path() / "cmdline"), "\n", ReadFile(entry.path() / "environ"), "\n",
                     fs::read_symlink(entry.path() / "cwd", error).string());
    if (absl::StrContains(mentions, folder)) found.push_back(pid);
  }
  return found;
}

bool WaitUntil(absl::FunctionRef<bool()> condition, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

}  // namespace tandem::testing
