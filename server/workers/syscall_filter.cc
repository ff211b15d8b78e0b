#include "server/workers/syscall_filter.h"

#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/sanitizer_build.h"
#include "engine/base/status_macros.h"
#include "server/workers/sandbox_support.h"

namespace tandem {
namespace {

// By name: libseccomp skips names that the processor lacks, and this file skips names that libseccomp does
// not know.
constexpr const char* kDenied[] = {
    // Other processes.
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp",
    "pidfd_getfd", "pidfd_send_signal", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "tkill",
    // Mounts, namespaces, files by handle.
    "mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig",
    "fsmount", "fspick", "mount_setattr", "unshare", "setns", "open_by_handle_at", "name_to_handle_at",
    "quotactl", "quotactl_fd", "fanotify_init", "acct", "swapon", "swapoff",
    // Modes and owners by path, which Landlock allows for all files of the account: the daemon could lose its
    // own files.
    "chmod", "fchmodat", "chown", "lchown", "fchownat", "setxattr", "lsetxattr", "removexattr",
    "lremovexattr",
    // The kernel.
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "bpf",
    "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "syslog",
    "add_key", "keyctl", "request_key", "iopl", "ioperm", "modify_ldt", "vhangup", "lookup_dcookie",
    // The machine's clocks and names.
    "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "stime", "sethostname", "setdomainname",
    // Other identities.
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid", "setgroups",
    "capset"};
// Calls for modes that Debian 12's libseccomp does not know. Newer calls have the same number everywhere.
constexpr int kDeniedNumbers[] = {
    452,  // fchmodat2
    463,  // setxattrat
    466,  // removexattrat
    469,  // file_setattr
};
// Starting programs and processes. clone() depends on its flags.
constexpr const char* kProcesses[] = {"execve", "execveat", "fork", "vfork"};
constexpr const char* kSockets[] = {"socket",  "socketpair", "connect", "bind",     "listen",  "accept",
                                    "accept4", "sendto",     "sendmsg", "sendmmsg", "recvmmsg"};
// Terminals: text that is put into a terminal is read as typed by its user.
constexpr uint64_t kPutIntoTerminal = 0x5412;  // TIOCSTI
constexpr uint64_t kLinuxTerminal = 0x541c;    // TIOCLINUX

class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ALLOW)) {}
  ~Filter() {
    if (context_ != nullptr) seccomp_release(context_);
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  bool valid() const { return context_ != nullptr; }
  absl::Status status() const { return status_; }

  void Deny(const char* call) { Deny(call, EPERM, 0, nullptr); }
  void Deny(int number) { Deny(number, absl::StrCat("call ", number), EPERM, 0, nullptr); }
  void Deny(const char* call, scmp_arg_cmp when) { Deny(call, EPERM, 1, &when); }
  // Fails as if the kernel lacked the call, so that the C library uses the older call.
  void Hide(const char* call) { Deny(call, ENOSYS, 0, nullptr); }

  absl::Status Load() {
    TANDEM_RETURN_IF_ERROR(status_);
    // Applies the filter to all existing threads.
    const int error = seccomp_attr_set(context_, SCMP_FLTATR_CTL_TSYNC, 1);
    if (error != 0) return absl::ErrnoToStatus(-error, "cannot filter system calls in all threads");
    const int loaded = seccomp_load(context_);
    return loaded == 0 ? absl::OkStatus() : absl::ErrnoToStatus(-loaded, "cannot filter system calls");
  }

 private:
  void Deny(const char* call, int error, unsigned conditions, const scmp_arg_cmp* when) {
    const int number = seccomp_syscall_resolve_name(call);
    if (number != __NR_SCMP_ERROR) Deny(number, call, error, conditions, when);
  }
  void Deny(int number, absl::string_view name, int error, unsigned conditions, const scmp_arg_cmp* when) {
    const int added = seccomp_rule_add_array(context_, SCMP_ACT_ERRNO(static_cast<uint32_t>(error)), number,
                                             conditions, when);
    if (added != 0) status_.Update(absl::ErrnoToStatus(-added, absl::StrCat("cannot filter ", name)));
  }

  const scmp_filter_ctx context_;
  absl::Status status_;
};

// Compares the low half of an argument: for an int, the kernel ignores the rest of the register.
scmp_arg_cmp HalfEquals(unsigned argument, uint32_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, 0xffffffff, value};
}

void DenySockets(WorkerNetwork network, Filter* filter) {
  if (network == WorkerNetwork::kNone) {
    for (const char* call : kSockets) filter->Deny(call);
    return;
  }
  // One rule per family, because a rule cannot say "none of these".
  for (uint32_t family = 0; family < AF_MAX; ++family) {
    if (family == AF_UNIX) continue;
    const bool is_ip = family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
    if (is_ip && network == WorkerNetwork::kAll) continue;
    filter->Deny("socket", HalfEquals(0, family));
  }
}

}  // namespace

absl::Status EnterSyscallFilter(WorkerNetwork network) {
  if (!HasSyscallFilter())
    return absl::UnimplementedError("cannot filter system calls: the kernel does not support it");
  Filter filter;
  if (!filter.valid()) return absl::InternalError("cannot filter system calls: libseccomp failed");
  for (const char* call : kDenied) {
    if (kSanitizerBuild && strcmp(call, "ptrace") == 0) continue;
    filter.Deny(call);
  }
  for (const int number : kDeniedNumbers) filter.Deny(number);
  if (!kSanitizerBuild) {
    for (const char* call : kProcesses) filter.Deny(call);
    // Its flags are in memory, which a filter cannot see.
    filter.Hide("clone3");
    filter.Deny("clone", {0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0});
    // A process must signal itself to abort. A new enough Landlock also blocks signals to others.
    const uint32_t self = static_cast<uint32_t>(getpid());
    for (const char* call : {"kill", "tgkill"}) {
      filter.Deny(call, {0, SCMP_CMP_LT, self, 0});
      filter.Deny(call, {0, SCMP_CMP_GT, self, 0});
    }
  }
  // Sets the limits of any process of the account, so also of the daemon. The C library passes 0, which is
  // the caller.
  filter.Deny("prlimit64", {0, SCMP_CMP_NE, 0, 0});
  for (const uint32_t kind : {S_IFCHR, S_IFBLK}) {
    filter.Deny("mknod", {1, SCMP_CMP_MASKED_EQ, S_IFMT, kind});
    filter.Deny("mknodat", {2, SCMP_CMP_MASKED_EQ, S_IFMT, kind});
  }
  // Otherwise a daemon that is not root could not see the worker's open files.
  filter.Deny("prctl", HalfEquals(0, PR_SET_DUMPABLE));
  filter.Deny("ioctl", HalfEquals(1, kPutIntoTerminal));
  filter.Deny("ioctl", HalfEquals(1, kLinuxTerminal));
  DenySockets(network, &filter);
  return filter.Load();
}

}  // namespace tandem
