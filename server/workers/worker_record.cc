#include "server/workers/worker_record.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "server/jobs/boot_clock.h"

namespace tandem {
namespace {

// Counted in /proc/PID/stat after the program's name.
constexpr size_t kStartField = 19;

// Identifies the boot and container in which pids are valid; empty if unknown.
const std::string& ProcessesOf() {
  static const std::string* const id = [] {
    const std::string boot = BootId();
    std::error_code error;
    const std::string container = std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
    return new std::string(boot.empty() || container.empty() ? "" : absl::StrCat(boot, ",", container));
  }();
  return *id;
}

// Identifies the folder itself, because a copy of the state folder does not have its workers; empty if
// missing.
std::string IdentityOf(const std::string& folder) {
  struct stat entry;
  if (stat(folder.c_str(), &entry) != 0) return "";
  return absl::StrCat(entry.st_dev, ":", entry.st_ino);
}

}  // namespace

std::string WorkerRecordPath(const std::string& job_folder) {
  const std::filesystem::path folder(job_folder);
  return (folder.parent_path().parent_path() / "workers" / folder.filename()).string();
}

absl::Status WriteWorkerRecord(const std::string& job_folder, const WorkerRecord& record) {
  std::string text = absl::StrCat("system=", ProcessesOf(), " folder=", IdentityOf(job_folder),
                                  " attempt=", record.attempt, " workers=", record.workers, "\n");
  for (const WorkerRecord::Process& process : record.processes) {
    absl::StrAppend(&text, "pid=", process.pid, " start=", process.start, "\n");
  }
  const std::string path = WorkerRecordPath(job_folder);
  TANDEM_RETURN_IF_ERROR(EnsureOwnerFolder(ParentFolder(path)));
  // The processes do not survive a crash of the machine.
  return WriteFileAtomically(Env::Real(), path, [&](WritableFile& file) { return file.Append(text); },
                             {.durable = AtomicWrite::Durable::kNothing, .is_private = true});
}

std::optional<WorkerRecord> ReadWorkerRecord(const std::string& job_folder) {
  std::istringstream lines(ContentOrEmpty(WorkerRecordPath(job_folder)));
  std::string line;
  if (!std::getline(lines, line)) return std::nullopt;
  WorkerRecord record;
  char system[128] = {}, folder[64] = {};
  const int read = std::sscanf(line.c_str(), "system=%127s folder=%63s attempt=%d workers=%d", system, folder,
                               &record.attempt, &record.workers);
  if (read != 4 || system != ProcessesOf() || folder != IdentityOf(job_folder) || record.workers < 1) {
    return std::nullopt;
  }
  while (std::getline(lines, line)) {
    WorkerRecord::Process process;
    unsigned long long start = 0;
    if (std::sscanf(line.c_str(), "pid=%d start=%llu", &process.pid, &start) != 2 || process.pid <= 0) break;
    process.start = start;
    record.processes.push_back(process);
  }
  return record;
}

void RemoveWorkerRecord(const std::string& job_folder) {
  const std::string path = WorkerRecordPath(job_folder);
  unlink(path.c_str());
  unlink((path + kUnfinishedEnding).c_str());
}

uint64_t StartOfProcess(pid_t pid) {
  const std::string text = ContentOrEmpty(absl::StrCat("/proc/", pid, "/stat"));
  // The program chooses its name, which may have any characters.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 > text.size()) return 0;
  const std::vector<std::string> fields = absl::StrSplit(text.substr(name_end + 2), ' ');
  uint64_t start = 0;
  if (fields.size() <= kStartField || !absl::SimpleAtoi(fields[kStartField], &start)) return 0;
  return start;
}

}  // namespace tandem
