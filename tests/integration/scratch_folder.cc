#include "tests/integration/scratch_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/integration/processes.h"

namespace tandem::testing {
namespace {

// Waits for the end of its input, then does the work of ~ScratchFolder. It reads from a named pipe, so that
// it inherits nothing.
constexpr char kGuard[] = R"(cat "$1/guard" >/dev/null
for process in /proc/[0-9]*; do
  id=${process#/proc/}
  if [ "$id" != $$ ] && grep -qaF -- "$1" "$process/cmdline" "$process/environ" 2>/dev/null; then kill -9 "$id"; fi
done
rm -rf -- "$1")";

}  // namespace

ScratchFolder::ScratchFolder() {
  char path[] = "/tmp/tandem-test-XXXXXX";
  if (mkdtemp(path) == nullptr) ADD_FAILURE() << "no folder under /tmp";
  path_ = path;
  const std::string pipe = File("guard");
  mkfifo(pipe.c_str(), 0600);
  absl::StatusOr<std::unique_ptr<Subprocess>> guard = Subprocess::Start({
      .arguments = {"/bin/sh", "-c", kGuard, "guard", path_},
      .stdout_path = "/dev/null",
      .stderr_path = "/dev/null",
  });
  if (guard.ok()) guard_ = *std::move(guard);
  guard_pipe_ = open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
}

ScratchFolder::~ScratchFolder() {
  guard_ = nullptr;
  close(guard_pipe_);
  for (const pid_t process : FindProcesses("", path_)) kill(process, SIGKILL);
  WaitUntil([&] { return FindProcesses("", path_).empty(); }, absl::Seconds(10));
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string ScratchFolder::File(absl::string_view name) const { return absl::StrCat(path_, "/", name); }

std::string ScratchFolder::Write(absl::string_view name, absl::string_view content) const {
  const std::string path = File(name);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary).write(content.data(), content.size());
  return path;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace tandem::testing
