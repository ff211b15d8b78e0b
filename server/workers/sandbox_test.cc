#include "server/workers/sandbox.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/workers/kept_weights.h"
#include "server/workers/sandbox_fixture.h"
#include "server/workers/sandbox_support.h"

namespace tandem {
namespace {

TEST_F(SandboxTest, FilesBeyondThePolicyAreShut) {
  SKIP_WITHOUT_LANDLOCK();
  EXPECT_EQ(InSandbox([this] { return OpenFor(own_ + "/new", O_RDWR | O_CREAT); }), 0);
  EXPECT_EQ(InSandbox([this] { return Result(mkdir((own_ + "/made").c_str(), 0700)); }), 0);
  EXPECT_EQ(InSandbox([this] { return Result(rename((own_ + "/new").c_str(), (own_ + "/made/b").c_str())); }),
            0);
  EXPECT_EQ(InSandbox([this] { return Result(unlink((own_ + "/made/b").c_str())); }), 0);
  EXPECT_EQ(InSandbox([this] { return OpenFor(data_ + "/file", O_RDONLY); }), 0);
  EXPECT_EQ(InSandbox([] { return OpenFor("/usr/bin/env", O_RDONLY); }), 0);
  EXPECT_EQ(InSandbox([] { return OpenFor("/dev/null", O_RDWR); }), 0);
  EXPECT_EQ(InSandbox([] { return OpenFor("/proc/meminfo", O_RDONLY); }), 0);

  EXPECT_EQ(InSandbox([this] { return OpenFor(data_ + "/file", O_RDWR); }), EACCES);
  EXPECT_EQ(InSandbox([this] { return OpenFor(data_ + "/new", O_RDWR | O_CREAT); }), EACCES);
  EXPECT_EQ(InSandbox([this] { return Result(unlink((data_ + "/file").c_str())); }), EACCES);
  EXPECT_EQ(InSandbox([this] { return OpenFor(other_ + "/file", O_RDONLY); }), EACCES);
  EXPECT_EQ(InSandbox([] { return OpenFor("/etc/shadow", O_RDONLY); }), EACCES);
  EXPECT_EQ(InSandbox([this] { return OpenFor(folder_.path(), O_RDONLY | O_DIRECTORY); }), EACCES);
  // By a detour: its own symbolic link, or an existing link.
  EXPECT_EQ(InSandbox([this] { return Result(symlink("/etc/shadow", (own_ + "/link").c_str())); }), EACCES);
  ASSERT_EQ(symlink((other_ + "/file").c_str(), (own_ + "/there").c_str()), 0);
  EXPECT_EQ(InSandbox([this] { return OpenFor(own_ + "/there", O_RDWR); }), EACCES);
  EXPECT_EQ(InSandbox([this] { return Result(rename((own_ + "/file").c_str(), (other_ + "/b").c_str())); }),
            LandlockVersion() >= 2 ? EACCES : EXDEV);
  // Things that the daemon could take for a device or a socket.
  EXPECT_NE(InSandbox([this] { return Result(mknod((own_ + "/disk").c_str(), S_IFBLK | 0600, 0x0800)); }), 0);
}

// The right covers the file, not its folder: another file there may be another job's.
TEST_F(SandboxTest, OneFileIsNotItsFolder) {
  SKIP_WITHOUT_LANDLOCK();
  std::ofstream(other_ + "/plans") << "a";
  policy_.write.push_back(other_ + "/plans");
  EXPECT_EQ(InSandbox([this] { return OpenFor(other_ + "/plans", O_RDWR | O_CREAT | O_APPEND); }), 0);
  EXPECT_EQ(InSandbox([this] { return OpenFor(other_ + "/file", O_RDONLY); }), EACCES);
}

// A job's kept weights are a name of another job's model. A hijacked worker can read that file, but can
// change neither it nor other files in the same folder.
TEST_F(SandboxTest, KeptWeightsAreReadAndNotChanged) {
  SKIP_WITHOUT_LANDLOCK();
  const std::string jobs = folder_.path() + "/jobs";
  const std::string job = jobs + "/a";
  std::filesystem::create_directories(job);
  std::ofstream(job + "/file") << "else";
  const std::string model = other_ + "/file";
  ASSERT_TRUE(KeepWeights(model, job, ::link).ok());
  ASSERT_TRUE(KeepWeights(data_ + "/file", jobs + "/b", ::link).ok());
  const std::string kept = KeptWeightsPath(job);
  policy_.read = {kept};
  policy_.write = {job};
  EXPECT_EQ(InSandbox([&] { return OpenFor(kept, O_RDONLY); }), 0);
  EXPECT_EQ(InSandbox([&] { return OpenFor(KeptWeightsPath(jobs + "/b"), O_RDONLY); }), EACCES);

  EXPECT_EQ(InSandbox([&] { return OpenFor(kept, O_RDWR); }), EACCES);
  EXPECT_EQ(InSandbox([&] { return OpenFor(kept, O_WRONLY | O_TRUNC); }), EACCES);
  if (LandlockVersion() >= 3) {
    EXPECT_EQ(InSandbox([&] { return Result(truncate(kept.c_str(), 0)); }), EACCES);
  }
  EXPECT_EQ(InSandbox([&] { return Result(unlink(kept.c_str())); }), EACCES);
  EXPECT_EQ(InSandbox([&] { return OpenFor(KeptWeightsFolder(jobs) + "/c", O_RDWR | O_CREAT); }), EACCES);
  // In its own folder it may write, so try another name there, or a file there in its place.
  const std::string name = job + "/name";
  EXPECT_NE(InSandbox([&] { return Result(link(kept.c_str(), name.c_str())); }), 0);
  EXPECT_NE(InSandbox([&] { return Result(rename(kept.c_str(), name.c_str())); }), 0);
  EXPECT_NE(InSandbox([&] { return Result(rename((job + "/file").c_str(), kept.c_str())); }), 0);
  // By a file that it may have open.
  const auto by_descriptor = [&](const std::function<int(const std::string&)>& act) {
    return InSandbox([&] {
      const int file = open(kept.c_str(), O_RDONLY | O_CLOEXEC);
      return file < 0 ? 0 : act(absl::StrCat("/proc/self/fd/", file));
    });
  };
  EXPECT_EQ(by_descriptor([](const std::string& path) { return OpenFor(path, O_RDWR); }), EACCES);
  EXPECT_NE(by_descriptor([&](const std::string& path) {
              return Result(linkat(AT_FDCWD, path.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW));
            }),
            0);
  EXPECT_EQ(InSandbox([&] { return OpenFor(model, O_RDWR); }), EACCES);
  std::string text;
  std::ifstream(model) >> text;
  EXPECT_EQ(text, "text");
  EXPECT_FALSE(std::filesystem::exists(name));
}

// CUDA names its threads in this way, from another thread, and fails if it cannot.
TEST_F(SandboxTest, AThreadIsNamedThroughProc) {
  const auto name_thread = [] {
    int result = 1;
    const pid_t main_thread = getpid();
    std::thread([&] {
      const std::string own = absl::StrCat("/proc/self/task/", syscall(SYS_gettid), "/comm");
      result = OpenFor(own, O_RDWR);
      if (result == 0) result = OpenFor(absl::StrCat("/proc/self/task/", main_thread, "/comm"), O_WRONLY);
      if (result == 0)
        result = OpenFor(absl::StrCat("/proc/", main_thread, "/task/", main_thread, "/comm"), O_RDWR);
    }).join();
    return result;
  };
  EXPECT_EQ(InSandbox(name_thread), 0);
  EXPECT_EQ(InSandbox([&] {
              // The kernel forgets cached folders when it needs memory.
              for (int i = 0; i < 2000; ++i) OpenFor(absl::StrCat("/proc/", i, "/task"), O_RDONLY);
              return name_thread();
            }),
            0);
  if (LandlockVersion() < 1) return;
  EXPECT_EQ(InSandbox([] { return OpenFor("/proc/self/oom_score_adj", O_RDWR); }), EACCES);
  EXPECT_EQ(InSandbox([] { return OpenFor("/proc/sys/kernel/core_pattern", O_RDWR); }), EACCES);
}

TEST_F(SandboxTest, OtherProcessesAreLeftAlone) {
  SKIP_WITHOUT_FILTERS();
  const pid_t parent = getpid();
  EXPECT_EQ(InSandbox([] { return Result(kill(getpid(), 0)); }), 0);
  EXPECT_EQ(InSandbox([] { return Result(raise(SIGCHLD)); }), 0);
  EXPECT_EQ(InSandbox([=] {
              char byte = 0;
              const iovec here = {&byte, 1}, there = {&byte, 1};
              return Result(syscall(SYS_process_vm_readv, parent, &here, 1, &there, 1, 0));
            }),
            EPERM);
  // It may lower its own limits, not those of the daemon, and may not read the daemon's.
  EXPECT_EQ(InSandbox([] {
              rlimit files = {};
              if (getrlimit(RLIMIT_NOFILE, &files) != 0) return errno;
              files.rlim_cur = 16;
              return Result(setrlimit(RLIMIT_NOFILE, &files));
            }),
            0);
  EXPECT_EQ(InSandbox([=] {
              const rlimit none = {0, 0};
              return Result(prlimit(parent, RLIMIT_CORE, &none, nullptr));
            }),
            EPERM);
  EXPECT_EQ(InSandbox([=] {
              rlimit files = {};
              return Result(prlimit(parent, RLIMIT_NOFILE, nullptr, &files));
            }),
            EPERM);
  if (LandlockVersion() < 1) return;
  EXPECT_EQ(InSandbox([=] { return OpenFor(absl::StrCat("/proc/", parent, "/environ"), O_RDONLY); }), EACCES);
  EXPECT_EQ(InSandbox([=] { return OpenFor(absl::StrCat("/proc/", parent, "/root/etc/shadow"), O_RDONLY); }),
            EACCES);
}

TEST_F(SandboxTest, TheKernelIsLeftAlone) {
  SKIP_WITHOUT_FILTERS();
  const std::pair<const char*, std::function<long()>> cases[] = {
      {"mount", [] { return mount("none", "/tmp", "tmpfs", 0, nullptr); }},
      {"umount", [] { return umount2("/nowhere", 0); }},
      {"unshare", [] { return unshare(CLONE_NEWUSER); }},
      {"setns", [] { return setns(0, 0); }},
      {"chroot", [] { return chroot("/"); }},
      {"bpf", [] { return syscall(SYS_bpf, BPF_MAP_CREATE, nullptr, 0); }},
      {"init_module", [] { return syscall(SYS_init_module, nullptr, 0, ""); }},
      {"finit_module", [] { return syscall(SYS_finit_module, 0, "", 0); }},
      {"kexec_load", [] { return syscall(SYS_kexec_load, 0, 0, nullptr, 0); }},
      {"reboot", [] { return syscall(SYS_reboot, 0, 0, 0, nullptr); }},
      {"keyctl", [] { return syscall(SYS_keyctl, 0, 0, 0, 0, 0); }},
      {"add_key", [] { return syscall(SYS_add_key, "user", "a", "b", 1, -3); }},
      {"perf_event_open", [] { return syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0); }},
      {"userfaultfd", [] { return syscall(SYS_userfaultfd, 0); }},
      {"io_uring_setup", [] { return syscall(SYS_io_uring_setup, 1, nullptr); }},
      {"setuid", [] { return syscall(SYS_setuid, getuid()); }},
      {"clock_settime", [] { return syscall(SYS_clock_settime, 0, nullptr); }},
      {"sethostname", [] { return sethostname("a", 1); }},
      {"open_by_handle_at", [] { return syscall(SYS_open_by_handle_at, 0, nullptr, 0); }}};
  for (const auto& [name, call] : cases) {
    EXPECT_EQ(InSandbox([&call = call] { return Result(call()); }), EPERM) << name;
  }
}

// Also for files that it may neither read nor write, because Landlock does not restrict this.
TEST_F(SandboxTest, ModesAndOwnersStayAsTheyAre) {
  SKIP_WITHOUT_FILTERS();
  const std::string path = policy_.write.front();
  const char* const file = path.c_str();
  const std::pair<const char*, std::function<long()>> cases[] = {
      {"chmod", [=] { return chmod(file, 0); }},
      {"fchmodat", [=] { return fchmodat(AT_FDCWD, file, 0, 0); }},
      {"fchmodat2", [=] { return syscall(452, AT_FDCWD, file, 0, 0); }},
      {"chown", [=] { return chown(file, getuid(), getgid()); }},
      {"lchown", [=] { return lchown(file, getuid(), getgid()); }},
      {"fchownat", [=] { return fchownat(AT_FDCWD, file, getuid(), getgid(), 0); }},
      {"setxattr", [=] { return setxattr(file, "user.a", "b", 1, 0); }},
      {"lsetxattr", [=] { return lsetxattr(file, "user.a", "b", 1, 0); }},
      {"setxattrat", [=] { return syscall(463, AT_FDCWD, file, 0, "user.a", nullptr, 0); }}};
  for (const auto& [name, call] : cases) {
    EXPECT_EQ(InSandbox([&call = call] { return Result(call()); }), EPERM) << name;
  }
}

TEST_F(SandboxTest, SocketsByWhatAWorkerIs) {
  SKIP_WITHOUT_FILTERS();
  const auto make = [this](int family) {
    return InSandbox([family] { return Result(socket(family, SOCK_STREAM, 0)); });
  };
  const auto make_pair = [this] {
    int ends[2];
    return InSandbox([&ends] { return Result(socketpair(AF_UNIX, SOCK_STREAM, 0, ends)); });
  };
  // Gloo listens on an address, and NCCL asks for interfaces.
  const auto meet = [] {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener, any, size) != 0 || listen(listener, 1) != 0) return errno;
    if (getsockname(listener, any, &size) != 0) return errno;
    return Result(connect(socket(AF_INET, SOCK_STREAM, 0), any, size));
  };
  EXPECT_EQ(make(AF_INET), 0);
  EXPECT_EQ(make(AF_UNIX), 0);
  EXPECT_EQ(InSandbox(meet), 0);
  EXPECT_EQ(InSandbox([] { return Result(socket(AF_NETLINK, SOCK_RAW, 0)); }), 0);
  EXPECT_EQ(InSandbox([] { return Result(socket(AF_PACKET, SOCK_RAW, 0)); }), EPERM);
  EXPECT_EQ(make(AF_ALG), EPERM);

  policy_.network = WorkerNetwork::kUnix;
  EXPECT_EQ(make(AF_UNIX), 0);
  EXPECT_EQ(make_pair(), 0);
  EXPECT_EQ(make(AF_INET), EPERM);
  EXPECT_EQ(make(AF_INET6), EPERM);
  EXPECT_EQ(make(AF_NETLINK), EPERM);

  policy_.network = WorkerNetwork::kNone;
  EXPECT_EQ(make(AF_UNIX), EPERM);
  EXPECT_EQ(make(AF_INET), EPERM);
  EXPECT_EQ(make_pair(), EPERM);
}

TEST_F(SandboxTest, LimitsOfResources) {
  EXPECT_EQ(InSandbox([] {
              rlimit core = {}, files = {};
              getrlimit(RLIMIT_CORE, &core);
              getrlimit(RLIMIT_NOFILE, &files);
              return core.rlim_max == 0 && files.rlim_max <= 65536 ? 0 : 1;
            }),
            0);
  // For good, even for root.
  EXPECT_EQ(InSandbox([] {
              const rlimit core = {RLIM_INFINITY, RLIM_INFINITY};
              return Result(setrlimit(RLIMIT_CORE, &core));
            }),
            EPERM);
  EXPECT_EQ(InSandbox([] { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 1; }), 0);
  // The daemon can see its open files.
  EXPECT_EQ(InSandbox([] { return Result(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)); }), EPERM);
}

TEST_F(SandboxTest, ModesAreWhatTheySay) {
  EXPECT_EQ(InSandbox([this] { return OpenFor(other_ + "/file", O_RDWR); }, SandboxMode::kOff), 0);
  const bool whole = MissingOfSandbox().empty();
  EXPECT_EQ(InSandbox([] { return 0; }, SandboxMode::kOn), whole ? 0 : kRefused);
  EXPECT_EQ(InSandbox([] { return 0; }, SandboxMode::kBestEffort), 0);
  EXPECT_FALSE(ParseSandboxMode("maybe").has_value());
  EXPECT_EQ(ParseSandboxMode(SandboxModeName(SandboxMode::kOn)), SandboxMode::kOn);
}

// A missing path in a policy is no error, because a data folder may be mounted later.
TEST_F(SandboxTest, WhatIsNotThereIsPassedOver) {
  policy_.read.push_back("/nowhere/at/all");
  EXPECT_EQ(InSandbox([this] { return OpenFor(data_ + "/file", O_RDONLY); }, SandboxMode::kBestEffort), 0);
}

}  // namespace
}  // namespace tandem
