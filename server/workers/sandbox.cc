#include "server/workers/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/sanitizer_build.h"
#include "engine/base/status_macros.h"
#include "engine/base/unique_fd.h"
#include "server/workers/sandbox_support.h"

namespace tandem {
namespace {

// From linux/landlock.h, because the build machine's header may be older than another machine's kernel.
constexpr int kPathBeneath = 1;
constexpr uint64_t kExecute = 1 << 0;
constexpr uint64_t kWriteFile = 1 << 1;
constexpr uint64_t kReadFile = 1 << 2;
constexpr uint64_t kReadDir = 1 << 3;
constexpr uint64_t kRemoveDir = 1 << 4;
constexpr uint64_t kRemoveFile = 1 << 5;
constexpr uint64_t kMakeChar = 1 << 6;
constexpr uint64_t kMakeDir = 1 << 7;
constexpr uint64_t kMakeReg = 1 << 8;
constexpr uint64_t kMakeSock = 1 << 9;
constexpr uint64_t kMakeFifo = 1 << 10;
constexpr uint64_t kMakeBlock = 1 << 11;
constexpr uint64_t kMakeSym = 1 << 12;
constexpr uint64_t kRefer = 1 << 13;     // Version 2.
constexpr uint64_t kTruncate = 1 << 14;  // Version 3.
constexpr uint64_t kIoctlDev = 1 << 15;  // Version 5.
constexpr uint64_t kTcp = (1 << 0) | (1 << 1);
constexpr uint64_t kScopeAbstractSocket = 1 << 0;
constexpr uint64_t kScopeSignal = 1 << 1;

struct RulesetAttributes {
  uint64_t files = 0;
  uint64_t network = 0;  // Version 4.
  uint64_t scoped = 0;   // Version 6.
};
struct __attribute__((packed)) PathAttributes {
  uint64_t allowed = 0;
  int32_t parent = -1;
};

// Debian 12's glibc lacks these calls. The numbers are the same on all processors.
constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;

// The rights that a rule for a file may have.
constexpr uint64_t kOfFiles = kWriteFile | kReadFile | kTruncate | kIoctlDev;

absl::Status AddRule(int rules, const std::string& path, uint64_t allowed) {
  const UniqueFd place(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place.valid()) return absl::OkStatus();
  struct stat info = {};
  if (fstat(place.get(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect ", path));
  if (!S_ISDIR(info.st_mode)) allowed &= kOfFiles;
  if (allowed == 0) return absl::OkStatus();
  PathAttributes rule;
  rule.allowed = allowed;
  rule.parent = place.get();
  if (syscall(kAddRule, rules, kPathBeneath, &rule, 0) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot add ", path, " to Landlock's rules"));
}

// The kernel's Landlock (see LandlockVersion) restricts for good how a process, and everything that it
// starts, may use files.
struct LandlockRules {
  // Files, and folders with everything below them. Missing ones are skipped.
  std::vector<std::string> read;
  // The same, for reading and writing. In a folder, files, folders and names of files may be created and
  // removed, but no symbolic links, sockets or devices. Also allows ioctl on devices.
  std::vector<std::string> write;
  // Allows TCP. Restricted only from version 4 on.
  bool tcp = true;
  // Allows connections to other processes' abstract sockets. Restricted only from version 6 on.
  bool abstract_sockets = true;
};

// Restricts the calling thread and its later threads. Call it while the process has one thread. Afterwards
// the process can execute nothing, and can signal no other process (from version 6 on). The calling thread
// must have no_new_privs. UNIMPLEMENTED: the kernel has no Landlock. Other errors: the kernel refused.
absl::Status EnterLandlock(const LandlockRules& rules) {
  const int version = LandlockVersion();
  if (version < 1) return absl::UnimplementedError("the kernel has no Landlock, or it is switched off");
  RulesetAttributes attributes;
  attributes.files = kExecute | kWriteFile | kReadFile | kReadDir | kRemoveDir | kRemoveFile | kMakeChar |
                     kMakeDir | kMakeReg | kMakeSock | kMakeFifo | kMakeBlock | kMakeSym;
  if (version >= 2) attributes.files |= kRefer;
  if (version >= 3) attributes.files |= kTruncate;
  if (version >= 5) attributes.files |= kIoctlDev;
  if (version >= 4 && !rules.tcp) attributes.network = kTcp;
  if (version >= 6) {
    attributes.scoped = kScopeSignal;
    if (!rules.abstract_sockets) attributes.scoped |= kScopeAbstractSocket;
  }
  // An older kernel accepts attributes beyond its own only if they are zero, and here they are.
  const UniqueFd set(static_cast<int>(syscall(kCreateRuleset, &attributes, sizeof(attributes), 0)));
  if (!set.valid()) return absl::ErrnoToStatus(errno, "cannot make Landlock's rules");
  const uint64_t read = kReadFile | kReadDir;
  const uint64_t write =
      (read | kWriteFile | kRemoveDir | kRemoveFile | kMakeDir | kMakeReg | kRefer | kTruncate | kIoctlDev) &
      attributes.files;
  for (const std::string& path : rules.read) TANDEM_RETURN_IF_ERROR(AddRule(set.get(), path, read));
  for (const std::string& path : rules.write) TANDEM_RETURN_IF_ERROR(AddRule(set.get(), path, write));
  if (syscall(kRestrictSelf, set.get(), 0) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot enter Landlock");
}

constexpr rlim_t kMostFiles = 65536;
constexpr rlim_t kMostThreads = 32768;

// Libraries and their files: the loader, the C library, OpenSSL, NCCL, OpenCL and RDMA. From /etc only the
// named files, because others may be secret.
constexpr const char* kSystem[] = {"/usr",
                                   "/lib",
                                   "/lib32",
                                   "/lib64",
                                   "/bin",
                                   "/opt",
                                   "/nix/store",
                                   "/proc",
                                   "/sys",
                                   "/usr/local/cuda",
                                   "/etc/ld.so.cache",
                                   "/etc/ld.so.conf",
                                   "/etc/ld.so.conf.d",
                                   "/etc/ld.so.preload",
                                   "/etc/localtime",
                                   "/etc/timezone",
                                   "/etc/passwd",
                                   "/etc/group",
                                   "/etc/nsswitch.conf",
                                   "/etc/hosts",
                                   "/etc/host.conf",
                                   "/etc/hostname",
                                   "/etc/resolv.conf",
                                   "/etc/gai.conf",
                                   "/etc/services",
                                   "/etc/protocols",
                                   "/etc/alternatives",
                                   "/etc/ssl/openssl.cnf",
                                   "/etc/nccl.conf",
                                   "/etc/libibverbs.d",
                                   "/etc/libnl",
                                   "/etc/libnl-3",
                                   "/etc/rdma",
                                   "/etc/OpenCL",
                                   "/etc/nvidia",
                                   "/etc/nvidia-container-runtime",
                                   "/etc/machine-id",
                                   "/run/nvidia",
                                   "/run/udev",
                                   "/var/lib/dcgm",
                                   "/dev/urandom",
                                   "/dev/random",
                                   "/dev/zero"};
// Written data is discarded, or belongs to a test.
constexpr const char* kSinks[] = {"/dev/null", "/dev/full", "/dev/tty"};
// In addition to /dev/nvidia*, which the machine numbers.
constexpr const char* kGpuDevices[] = {"/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels",
                                       "/dev/infiniband",  "/dev/gdrdrv",
                                       "/dev/dxg",         "/dev/shm"};

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

// NVIDIA's program creates the driver's missing devices. CUDA would start it as root, and cannot in the
// sandbox.
void MakeGpuDevices() {
  constexpr char kProgram[] = "/usr/bin/nvidia-modprobe";
  if (access("/dev/nvidia-uvm", F_OK) == 0 || access(kProgram, X_OK) != 0) return;
  pid_t pid = 0;
  char* const arguments[] = {const_cast<char*>("nvidia-modprobe"), const_cast<char*>("-u"),
                             const_cast<char*>("-c"), const_cast<char*>("0"), nullptr};
  if (posix_spawn(&pid, kProgram, nullptr, nullptr, arguments, environ) == 0) waitpid(pid, nullptr, 0);
}

void AddDevices(std::vector<std::string>* paths) {
  for (const char* path : kGpuDevices) paths->emplace_back(path);
  DIR* const folder = opendir("/dev");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    if (absl::StartsWith(entry->d_name, "nvidia")) paths->push_back(absl::StrCat("/dev/", entry->d_name));
  }
  closedir(folder);
}

// The files that CUDA writes. CUDA names its threads through /proc, and fails if it cannot.
void AddCuda(std::vector<std::string>* paths) {
  AddDevices(paths);
  std::string cache = Variable("CUDA_CACHE_PATH");
  if (const std::string home = Variable("HOME"); cache.empty() && !home.empty()) cache = home + "/.nv";
  if (!cache.empty()) {
    std::error_code error;
    std::filesystem::create_directories(cache, error);
    paths->push_back(cache);
  }
  const std::string service = Variable("CUDA_MPS_PIPE_DIRECTORY");
  paths->push_back(service.empty() ? "/tmp/nvidia-mps" : service);
  if (const std::string log = Variable("CUDA_MPS_LOG_DIRECTORY"); !log.empty()) paths->push_back(log);
}

// The loader's folders besides the system's: the environment's and the program's own.
void AddLibraries(std::vector<std::string>* paths) {
  const std::string searched = Variable("LD_LIBRARY_PATH");
  for (absl::string_view folder : absl::StrSplit(searched, ':', absl::SkipEmpty())) {
    paths->emplace_back(folder);
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string folder = Variable(variable); !folder.empty()) paths->push_back(folder);
  }
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return;
  // The program's symbols, for a crash report; and a bundle's libraries beside its folder.
  paths->push_back(program.string());
  paths->push_back((program.parent_path().parent_path() / "lib").string());
}

// Returns the folder of this process's threads. Landlock identifies the folder itself, so keep it open: it
// then stays the same as long as this process lives.
std::string PinThreads() {
  static const int threads = open("/proc/self/task", O_PATH | O_DIRECTORY | O_CLOEXEC);
  return threads < 0 ? "" : "/proc/self/task";
}

absl::Status LowerLimit(decltype(RLIMIT_CORE) what, const char* name, rlim_t most) {
  rlimit limit = {};
  if (getrlimit(what, &limit) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read the limit ", name));
  limit.rlim_max = std::min(limit.rlim_max, most);
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  if (setrlimit(what, &limit) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot lower the limit ", name));
  return absl::OkStatus();
}

absl::Status LowerLimits(const SandboxPolicy& policy) {
  // A crash report has the stack. A core of a GPU's worker would fill the disk.
  TANDEM_RETURN_IF_ERROR(LowerLimit(RLIMIT_CORE, "RLIMIT_CORE", 0));
  TANDEM_RETURN_IF_ERROR(LowerLimit(RLIMIT_NOFILE, "RLIMIT_NOFILE", kMostFiles));
  // Counts the threads of all of the user's processes.
  TANDEM_RETURN_IF_ERROR(LowerLimit(RLIMIT_NPROC, "RLIMIT_NPROC", kMostThreads));
  return policy.memory_bytes > 0 ? LimitMemory(policy.memory_bytes) : absl::OkStatus();
}

// A root daemon's workers run as root. They keep only the capabilities to read others' data, to lock memory
// for network cards, and to place memory.
absl::Status GiveUpCapabilities() {
  constexpr uint32_t kKept = (1u << CAP_DAC_OVERRIDE) | (1u << CAP_DAC_READ_SEARCH) | (1u << CAP_FOWNER) |
                             (1u << CAP_CHOWN) | (1u << CAP_IPC_LOCK) | (1u << CAP_SYS_NICE);
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return absl::ErrnoToStatus(errno, "cannot read capabilities");
  sets[0].effective &= kKept;
  sets[0].permitted &= kKept;
  sets[0].inheritable = 0;
  sets[1] = {};
  if (syscall(SYS_capset, &header, sets) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot give up capabilities");
}

LandlockRules RulesOf(const SandboxPolicy& policy) {
  LandlockRules rules;
  rules.read = policy.read;
  for (const char* path : kSystem) rules.read.emplace_back(path);
  AddLibraries(&rules.read);
  rules.write = policy.write;
  for (const char* path : kSinks) rules.write.emplace_back(path);
  if (const std::string threads = PinThreads(); !threads.empty()) rules.write.push_back(threads);
  if (policy.gpu) AddCuda(&rules.write);
  rules.tcp = policy.network == WorkerNetwork::kAll;
  // One job's processes on GPUs share memory over such sockets.
  rules.abstract_sockets = policy.network == WorkerNetwork::kAll;
  return rules;
}

}  // namespace

absl::Status LimitMemory(int64_t bytes) {
  if (kSanitizerBuild) return absl::OkStatus();
  // Counts written memory only, so mapped files and reserved memory do not count.
  return LowerLimit(RLIMIT_DATA, "RLIMIT_DATA", static_cast<rlim_t>(bytes));
}

absl::StatusOr<SandboxState> EnterSandbox(SandboxMode mode, const SandboxPolicy& policy) {
  SandboxState state;
  if (mode == SandboxMode::kOff) {
    state.missing = "switched off";
    return state;
  }
  const auto take = [&state](const absl::Status& status) {
    if (status.ok()) return true;
    absl::StrAppend(&state.missing, state.missing.empty() ? "" : "; ", status.message());
    return false;
  };
  if (policy.gpu) MakeGpuDevices();
  take(LowerLimits(policy));
  if (take(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
               ? absl::OkStatus()
               : absl::ErrnoToStatus(errno, "cannot give up new privileges"))) {
    take(GiveUpCapabilities());
    if (take(EnterLandlock(RulesOf(policy)))) state.landlock = LandlockVersion();
    state.filters_calls = take(EnterSyscallFilter(policy.network));
  }
  if (mode == SandboxMode::kOn && !state.missing.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot confine this worker as --worker-sandbox=on requires: ", state.missing,
                     "; --worker-sandbox=best-effort does what the kernel can"));
  }
  return state;
}

std::string DescribeSandbox(const SandboxState& state) {
  return absl::StrCat(state.landlock > 0 ? absl::StrCat("Landlock ", state.landlock) : "no Landlock",
                      state.filters_calls ? ", system calls filtered" : ", system calls not filtered",
                      state.missing.empty() ? "" : absl::StrCat(" (", state.missing, ")"));
}

}  // namespace tandem
