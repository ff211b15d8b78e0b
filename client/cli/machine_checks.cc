#include "client/cli/machine_checks.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/cluster_checks.h"
#include "client/cli/format.h"
#include "client/cli/tls_file_checks.h"
#include "engine/base/env.h"

namespace tandem::cli {
namespace {

constexpr int64_t kLittleSpace = int64_t{1} << 30;
// The shared memory that NCCL needs between two GPUs of a host, with a margin.
constexpr int64_t kLittleSharedMemory = int64_t{512} << 20;
constexpr absl::Duration kRestorationIsNews = absl::Hours(7 * 24);
constexpr int64_t kFewFiles = 4096;
constexpr int64_t kFewProcesses = 2048;
constexpr char kNvidiaVendor[] = "0x10de";

// Returns the process that holds the state folder, as the daemon wrote it, or 0 if none does.
int64_t DaemonProcess(const v1::Daemon& daemon, const std::string& root) {
  int64_t pid = 0;
  const std::string text = ContentOrEmpty(daemon.state_folder() + "/daemon.lock");
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &pid) || pid <= 0) return 0;
  std::error_code error;
  return std::filesystem::exists(absl::StrCat(root, "/proc/", pid), error) ? pid : 0;
}

void CheckDisk(const std::string& folder, Findings* findings) {
  struct statvfs disk = {};
  if (statvfs(folder.c_str(), &disk) != 0) {
    AddNote(findings, "disk", absl::StrCat("its free space is unknown: this user may not read ", folder));
    return;
  }
  const int64_t free = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
  const int64_t size = static_cast<int64_t>(disk.f_blocks) * static_cast<int64_t>(disk.f_frsize);
  const std::string room =
      absl::StrCat(FormatBytes(free), " of ", FormatBytes(size), " are free in ", folder);
  const bool is_read_only = (disk.f_flag & ST_RDONLY) != 0;
  if (is_read_only) {
    AddProblem(findings, "disk", absl::StrCat(folder, " is mounted read-only"),
               "dmesg has the cause; mount it for writing and restart the daemon");
  } else if (free < kLittleSpace || free < size / 50) {
    AddProblem(findings, "disk", room,
               "delete jobs (`tandem delete JOB`) or data sets, or make the cache smaller (--cache-size)");
  } else if (disk.f_files > 0 && disk.f_favail < disk.f_files / 50) {
    AddProblem(findings, "disk", absl::StrCat("only ", disk.f_favail, " files more fit into ", folder),
               "delete jobs or data sets of many small files");
  } else {
    AddFine(findings, "disk", room);
  }
}

void CheckFolders(const v1::Daemon& daemon, Findings* findings) {
  std::error_code error;
  for (const std::string& folder : daemon.data_folders()) {
    const std::filesystem::file_type found = std::filesystem::status(folder, error).type();
    if (found == std::filesystem::file_type::directory) continue;
    if (found == std::filesystem::file_type::not_found) {
      AddNote(findings, "data folders", absl::StrCat(folder, " does not exist"),
              "mount it, or name another with tandemd --data-folder");
    } else if (error) {
      AddNote(findings, "data folders",
              absl::StrCat("this user cannot reach ", folder, ": ", error.message()),
              "if the daemon's user cannot reach it either, the daemon's log says so at its start");
    } else {
      AddNote(findings, "data folders", absl::StrCat(folder, " is not a folder"),
              "name its folder with tandemd --data-folder");
    }
  }
  int64_t crashes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(daemon.state_folder(), error)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, "crash-") && absl::EndsWith(name, ".txt")) ++crashes;
  }
  if (crashes > 0) {
    AddNote(findings, "crashes",
            absl::StrCat("reports of the daemon's crashes: ", crashes, ", in ", daemon.state_folder(),
                         "/crash-*.txt"),
            "send them to the developers, then remove the files");
  }
}

// Repeats the daemon's log message for some days, for users who missed it.
void CheckRestoration(const std::string& folder, Findings* findings) {
  // The file's modify time may be newer than the restoration.
  std::ifstream mark(folder + "/tandem.db.restoration");
  absl::Time time = absl::InfinitePast();
  for (std::string line; std::getline(mark, line);) {
    absl::string_view value = line;
    if (absl::ConsumePrefix(&value, "time=")) absl::ParseTime(absl::RFC3339_full, value, &time, nullptr);
  }
  if (time == absl::InfinitePast()) return;
  const absl::Duration age = absl::Now() - time;
  if (age > kRestorationIsNews) return;
  AddNote(
      findings, "database",
      absl::StrCat("a backup replaced it ", FormatAge(std::max(age, absl::ZeroDuration())),
                   " ago: changes after the backup are lost, except changes that jobs' folders hold"),
      "the daemon's log lists them; check `tandem list`, and whether `tandem tokens` lists revoked tokens");
}

void CheckSharedMemory(const std::string& root, int64_t gpus, Findings* findings) {
  struct statvfs shared = {};
  const std::string folder = root + "/dev/shm";
  if (statvfs(folder.c_str(), &shared) != 0) {
    if (gpus > 1) {
      AddProblem(findings, "shared memory", "/dev/shm is missing, and processes on GPUs need it",
                 "mount a tmpfs there");
    }
    return;
  }
  const int64_t free = static_cast<int64_t>(shared.f_bavail) * static_cast<int64_t>(shared.f_frsize);
  if (gpus > 1 && free < kLittleSharedMemory) {
    AddProblem(findings, "shared memory", absl::StrCat("/dev/shm has only ", FormatBytes(free), " left"),
               "give the container more (docker run --shm-size 1g), or remove files there");
  } else {
    AddFine(findings, "shared memory", absl::StrCat("/dev/shm has ", FormatBytes(free), " left"));
  }
}

// Returns a soft limit of /proc/PID/limits, or -1 if it is missing or unlimited.
int64_t SoftLimit(const std::string& limits, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(limits, '\n')) {
    if (!absl::ConsumePrefix(&line, name)) continue;
    const std::vector<absl::string_view> columns = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t value = -1;
    return !columns.empty() && absl::SimpleAtoi(columns[0], &value) ? value : -1;
  }
  return -1;
}

void CheckLimits(int64_t pid, const std::string& root, Findings* findings) {
  const std::string limits = ContentOrEmpty(absl::StrCat(root, "/proc/", pid, "/limits"));
  if (limits.empty()) {
    AddNote(findings, "limits", "this user may not read the daemon's limits");
    return;
  }
  const int64_t files = SoftLimit(limits, "Max open files");
  const int64_t processes = SoftLimit(limits, "Max processes");
  if (files >= 0 && files < kFewFiles) {
    AddProblem(findings, "limits", absl::StrCat("the daemon may open only ", files, " files"),
               absl::StrCat("raise its hard limit: `ulimit -H -n ", kFewFiles * 4,
                            "`, or LimitNOFILE= in its unit"));
  }
  if (processes >= 0 && processes < kFewProcesses) {
    AddProblem(findings, "limits", absl::StrCat("the daemon's user may have only ", processes, " threads"),
               "raise `ulimit -u`, or LimitNPROC= and TasksMax= in its unit");
  }
  if ((files < 0 || files >= kFewFiles) && (processes < 0 || processes >= kFewProcesses)) {
    AddFine(findings, "limits", "files and threads are enough");
  }
}

// Returns the smallest limit from a control group up to the root, or -1 if there is none.
double SmallestLimit(const std::string& root, std::string group, const std::string& file,
                     double (*parse)(const std::string& text)) {
  double smallest = -1;
  while (true) {
    const double limit = parse(ContentOrEmpty(absl::StrCat(root, "/sys/fs/cgroup", group, "/", file)));
    if (limit >= 0 && (smallest < 0 || limit < smallest)) smallest = limit;
    const size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) return smallest;
    group.resize(slash);
  }
}

void CheckControlGroup(int64_t pid, const std::string& root, const std::vector<v1::Device>& devices,
                       Findings* findings) {
  std::string group;
  for (absl::string_view line :
       absl::StrSplit(ContentOrEmpty(absl::StrCat(root, "/proc/", pid, "/cgroup")), '\n')) {
    // The line of control groups version 2, which have a single hierarchy.
    if (absl::ConsumePrefix(&line, "0::")) group = std::string(line == "/" ? "" : line);
  }
  const double processors = SmallestLimit(root, group, "cpu.max", [](const std::string& text) {
    const std::vector<std::string> parts = absl::StrSplit(absl::StripAsciiWhitespace(text), ' ');
    double quota = 0;
    double period = 0;
    const bool limited = parts.size() == 2 && absl::SimpleAtod(parts[0], &quota) &&
                         absl::SimpleAtod(parts[1], &period) && period > 0;
    return limited ? quota / period : -1.0;
  });
  const double memory = SmallestLimit(root, group, "memory.max", [](const std::string& text) {
    double bytes = 0;
    return absl::SimpleAtod(absl::StripAsciiWhitespace(text), &bytes) ? bytes : -1.0;
  });
  int64_t threads = 0;
  int64_t planned = 0;
  for (const v1::Device& device : devices) {
    if (device.kind() == v1::DEVICE_KIND_GPU) continue;
    threads += device.threads();
    planned += device.memory_bytes();
  }
  if (processors >= 0 && static_cast<double>(threads) > processors + 0.01) {
    AddProblem(
        findings, "control group",
        absl::StrFormat("it has %.4g processors, but the CPU devices have %d threads", processors, threads),
        "give it more, or start tandemd with --cpu-devices and --threads-per-cpu-device that fit");
  }
  if (memory >= 0 && static_cast<double>(planned) > memory) {
    AddProblem(
        findings, "control group",
        absl::StrCat("it has ", FormatBytes(static_cast<int64_t>(memory)),
                     " of memory, but jobs may plan for ", FormatBytes(planned), ": workers will be killed"),
        "give it more, or start tandemd with a --memory that fits");
  }
}

// Checks the kernel's features for confining workers. `tandemd --check` also knows the daemon's options.
void CheckSandbox(const std::string& root, Findings* findings) {
  const std::string modules = ContentOrEmpty(root + "/sys/kernel/security/lsm");
  const std::string actions = ContentOrEmpty(root + "/proc/sys/kernel/seccomp/actions_avail");
  std::vector<absl::string_view> missing;
  // Some machines let only root read the list of modules.
  if (!modules.empty() && !absl::StrContains(modules, "landlock")) missing.push_back("Landlock");
  if (!absl::StrContains(actions, "errno")) missing.push_back("filters of system calls (seccomp)");
  if (missing.empty()) {
    AddFine(findings, "worker sandbox",
            modules.empty() ? "the kernel filters system calls"
                            : "the kernel has Landlock and filters system calls");
    return;
  }
  AddNote(findings, "worker sandbox",
          absl::StrCat("the kernel has no ", absl::StrJoin(missing, " and no "),
                       ", so workers are only partly confined"),
          "Linux 5.13 or newer has both; if the kernel has an lsm= parameter, it must name landlock");
}

void CheckDriver(const std::string& root, int64_t gpus, Findings* findings) {
  std::error_code error;
  int64_t cards = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/sys/bus/pci/devices", error)) {
    // Display controllers have the class 0x03.
    if (absl::StripAsciiWhitespace(ContentOrEmpty(entry.path().string() + "/vendor")) == kNvidiaVendor &&
        absl::StartsWith(ContentOrEmpty(entry.path().string() + "/class"), "0x03")) {
      ++cards;
    }
  }
  const std::string version = ContentOrEmpty(root + "/proc/driver/nvidia/version");
  if (version.empty()) {
    if (cards > 0) {
      AddProblem(findings, "GPU driver",
                 absl::StrCat("NVIDIA's driver is not loaded, but there are ", cards, " of its GPUs"),
                 "install it, or run `modprobe nvidia`; dmesg has the cause");
    }
    return;
  }
  const std::string line = version.substr(0, version.find('\n'));
  if (gpus == 0) {
    AddProblem(findings, "GPU driver", absl::StrCat("it is loaded (", line, "), but the daemon has no GPU"),
               "the first lines of its log say why: no CUDA in the build, CUDA_VISIBLE_DEVICES, or an old "
               "driver; if the driver was loaded later, restart the daemon");
  } else if (cards > gpus) {
    AddNote(findings, "GPU driver",
            absl::StrCat("the daemon has ", gpus, " of the machine's ", cards, " GPUs"),
            "the first lines of its log say why");
  } else {
    AddFine(findings, "GPU driver", line);
  }
}

}  // namespace

bool IsDaemonHere(const v1::Daemon& daemon, const std::string& root) {
  return !daemon.state_folder().empty() && DaemonProcess(daemon, root) != 0;
}

Findings CheckMachine(const v1::Daemon& daemon, const std::vector<v1::Device>& devices,
                      const std::string& root) {
  Findings findings;
  const int64_t gpus = std::count_if(devices.begin(), devices.end(), [](const v1::Device& device) {
    return device.kind() == v1::DEVICE_KIND_GPU;
  });
  CheckDisk(daemon.state_folder(), &findings);
  CheckFolders(daemon, &findings);
  CheckRestoration(daemon.state_folder(), &findings);
  CheckSharedMemory(root, gpus, &findings);
  const int64_t pid = DaemonProcess(daemon, root);
  CheckLimits(pid, root, &findings);
  for (Finding& finding : CheckTlsFiles(pid, root, absl::Now(), absl::LocalTimeZone())) {
    findings.push_back(std::move(finding));
  }
  for (Finding& finding : CheckClusterOptions(pid, root)) findings.push_back(std::move(finding));
  CheckControlGroup(pid, root, devices, &findings);
  CheckSandbox(root, &findings);
  CheckDriver(root, gpus, &findings);
  return findings;
}

}  // namespace tandem::cli
