#include "server/daemon/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/version.h"
#include "server/daemon/cluster_check.h"
#include "server/http/http_server.h"
#include "server/store/state_folder.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Verdict = Check::Verdict;

// A port of 127.0.0.1 that is in use while this object exists.
class TakenPort {
 public:
  TakenPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, any, size), 0);
    EXPECT_EQ(listen(socket_, 1), 0);
    EXPECT_EQ(getsockname(socket_, any, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { close(socket_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;

  int port() const { return port_; }

 private:
  const int socket_;
  int port_ = 0;
};

class CheckTest : public testing::Test {
 protected:
  CheckTest() {
    options_.state_folder = folder_.path() + "/state";
    options_.listen = "127.0.0.1:0";
    options_.worker_program = Program("tandem-worker", absl::StrCat("echo tandem-worker ", kVersion));
    options_.data_folders = {folder_.path()};
  }
  // Makes a shell script. Returns its path.
  std::string Program(const std::string& name, const std::string& code) {
    std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << code << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  // Returns all warnings and problems, one "PROBLEM subject: message" per line.
  std::string Wrong() {
    std::string text;
    for (const Check& check : CheckDaemon(options_)) {
      if (check.verdict == Verdict::kFine) continue;
      absl::StrAppend(&text, check.verdict == Verdict::kProblem ? "PROBLEM " : "warning ", check.subject,
                      ": ", check.message, "\n");
    }
    return text;
  }

  TemporaryFolder folder_;
  DaemonOptions options_;
};

TEST_F(CheckTest, ANewDaemonCouldRun) {
  EXPECT_EQ(Wrong(), "");
  EXPECT_FALSE(std::filesystem::exists(options_.state_folder)) << "it was created";
}

TEST_F(CheckTest, OneThatRunsIsNoProblem) {
  const auto state = StateFolder::Lock(options_.state_folder);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(Wrong(), "");
  EXPECT_THAT(CheckDaemon(options_).front().message, HasSubstr("a daemon uses it, so no other can start"));
  EXPECT_EQ(ConclusionOf(CheckDaemon(options_), options_),
            "tandemd could run with these options once the running one has ended");
}

// Only ports of the running daemon may be in use.
TEST_F(CheckTest, APortThatSomebodyElseHas) {
  const auto state = StateFolder::Lock(options_.state_folder);
  ASSERT_TRUE(state.ok()) << state.status();
  const TakenPort taken;
  options_.listen = absl::StrCat("127.0.0.1:", taken.port());
  EXPECT_THAT(Wrong(), HasSubstr("PROBLEM --listen " + options_.listen));
  std::ofstream(options_.state_folder + "/address") << options_.listen << "\n";
  EXPECT_EQ(Wrong(), "");
  // The running daemon listens at another host with this port.
  std::ofstream(options_.state_folder + "/address") << "127.0.0.2:" << taken.port() << "\n";
  EXPECT_EQ(Wrong(), "");
  std::ofstream(options_.state_folder + "/address") << "127.0.0.1:" << taken.port() + 1 << "\n";
  EXPECT_THAT(Wrong(), HasSubstr("PROBLEM --listen " + options_.listen));
  std::ofstream(options_.state_folder + "/address") << options_.listen << "\n";
  options_.metrics_listen = options_.listen;
  EXPECT_EQ(Wrong(), "");
}

TEST_F(CheckTest, ADatabaseThatIsMissing) {
  std::filesystem::create_directories(options_.state_folder + "/jobs/a-1");
  chmod(options_.state_folder.c_str(), 0700);
  EXPECT_THAT(Wrong(), HasSubstr("tandem.db: is missing, but jobs/ belong to it"));
  std::filesystem::create_directories(options_.state_folder + "/backups");
  // A file that is no backup to the daemon.
  std::ofstream(options_.state_folder + "/backups/x.db") << "x";
  EXPECT_THAT(Wrong(), HasSubstr("PROBLEM " + options_.state_folder + "/tandem.db: is missing"));
  std::ofstream(options_.state_folder + "/backups/20261122T141530Z.db") << "x";
  EXPECT_THAT(Wrong(), HasSubstr("warning " + options_.state_folder +
                                 "/tandem.db: is missing: the daemon will restore"));
  std::ofstream(options_.state_folder + "/tandem.db").close();
  EXPECT_THAT(Wrong(), HasSubstr("tandem.db: is empty: the daemon will restore"));
  // An empty database without backups counts as new.
  std::filesystem::remove_all(options_.state_folder + "/backups");
  std::filesystem::remove_all(options_.state_folder + "/jobs");
  EXPECT_EQ(Wrong(), "");
}

TEST_F(CheckTest, ADatabaseThatCannotBeOpened) {
  std::filesystem::create_directories(options_.state_folder + "/backups");
  chmod(options_.state_folder.c_str(), 0700);
  std::ofstream(options_.state_folder + "/backups/20261122T141530Z.db") << "x";
  const std::string path = options_.state_folder + "/tandem.db";
  std::filesystem::create_symlink("/no/such/disk/tandem.db", path);
  EXPECT_THAT(Wrong(), HasSubstr("PROBLEM " + path +
                                 ": is a link to /no/such/disk/tandem.db, which cannot be opened for reading "
                                 "and writing: No such file or directory; is its disk mounted?"));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_THAT(Wrong(),
              HasSubstr("PROBLEM " + path + ": cannot be opened for reading and writing: Is a directory"));
}

TEST_F(CheckTest, AFolderThatOthersMayWriteTo) {
  std::filesystem::create_directories(options_.state_folder);
  chmod(options_.state_folder.c_str(), 0777);
  EXPECT_THAT(Wrong(),
              HasSubstr("PROBLEM state folder " + options_.state_folder + ": other users may write to it"));
}

// The system reports a little space there, but nobody can use it.
TEST_F(CheckTest, AFullDisk) {
  std::filesystem::create_directories(options_.state_folder);
  if (mount("tmpfs", options_.state_folder.c_str(), "tmpfs", 0, "size=2m,mode=0700") != 0) {
    GTEST_SKIP() << "may not mount a file system here";
  }
  EXPECT_THAT(Wrong(), HasSubstr("warning state folder"));
  std::ofstream(options_.state_folder + "/ballast") << std::string(3 << 20, 'x');
  EXPECT_THAT(Wrong(),
              AllOf(HasSubstr("PROBLEM state folder"), HasSubstr("No space left"), HasSubstr("make room")));
  // The reserve lets a daemon start on the full disk.
  std::filesystem::resize_file(options_.state_folder + "/ballast", 4096);
  std::ofstream(options_.state_folder + "/tandem.db-reserve") << std::string(1 << 20, 'x');
  std::ofstream(options_.state_folder + "/ballast") << std::string(3 << 20, 'x');
  EXPECT_THAT(Wrong(), AllOf(HasSubstr("warning state folder"), HasSubstr("can be deleted"),
                             Not(HasSubstr("PROBLEM"))));
  EXPECT_EQ(mount("", options_.state_folder.c_str(), "", MS_REMOUNT | MS_RDONLY, ""), 0);
  EXPECT_THAT(Wrong(), HasSubstr("mounted read-only"));
  umount2(options_.state_folder.c_str(), MNT_DETACH);
}

TEST_F(CheckTest, AddressesThatMustNotBe) {
  options_.listen = "0.0.0.0:0";
  options_.metrics_listen = "0.0.0.0:0";
  EXPECT_THAT(Wrong(), HasSubstr("PROBLEM --listen 0.0.0.0:0: cannot listen"));
  EXPECT_THAT(Wrong(), HasSubstr("PROBLEM --metrics-listen 0.0.0.0:0: cannot serve metrics"));
  options_.insecure_listen_beyond_loopback = true;
  options_.metrics_beyond_loopback = true;
  EXPECT_THAT(Wrong(), HasSubstr("warning --listen 0.0.0.0:0: without TLS"));
  options_.listen = "nowhere";
  EXPECT_THAT(Wrong(), HasSubstr("PROBLEM --listen nowhere: "));
}

// Without this check, a daemon would take over its jobs and then end.
TEST_F(CheckTest, MetricsAtAnIpv6Address) {
  options_.metrics_listen = "[::1]:0";
  const std::string problem =
      "PROBLEM --metrics-listen [::1]:0: cannot serve metrics on [::1]:0: the HTTP server of this build has "
      "no "
      "IPv6; listen on an IPv4 address, such as 127.0.0.1\n";
  EXPECT_EQ(Wrong(), HttpServer::HasIpv6() ? "" : problem);
}

// Each message names the option for another address.
TEST_F(CheckTest, APortThatIsTaken) {
  const TakenPort taken;
  options_.metrics_listen = absl::StrCat("127.0.0.1:", taken.port());
  EXPECT_THAT(Wrong(), AllOf(HasSubstr("PROBLEM --metrics-listen"), HasSubstr("the port is in use"),
                             HasSubstr("choose another with --metrics-listen")));
  options_.listen = options_.metrics_listen;
  options_.metrics_listen.clear();
  EXPECT_THAT(Wrong(), AllOf(HasSubstr("PROBLEM --listen"), HasSubstr("choose another with --listen")));
}

TEST_F(CheckTest, FilesThatAreNotAsTheyMustBe) {
  std::filesystem::create_directories(options_.state_folder);
  chmod(options_.state_folder.c_str(), 0700);
  std::ofstream(options_.state_folder + "/token") << "0123456789abcdef0123456789abcdef\n";
  chmod((options_.state_folder + "/token").c_str(), 0644);
  std::ofstream(options_.state_folder + "/tandem.db") << "this is no database at all";
  std::ofstream(options_.state_folder + "/crash-1.txt") << "a stack";
  std::ofstream(options_.state_folder + "/tandem.db.damaged-20261122T141530Z") << "damage";
  options_.worker_program = "/no/such/worker";
  const std::string loop = options_.state_folder + "/loop";
  std::filesystem::create_symlink(loop, loop);
  options_.data_folders = {"/no/such/data", options_.state_folder + "/token", loop};
  options_.tls_cert = options_.tls_key = "/no/such/cert.pem";
  const std::string wrong = Wrong();
  for (const char* part :
       {"token: its mode 0644", "tandem.db: is not a database", "crash-1.txt; report it, then remove",
        "tandem.db.damaged-20261122T141530Z: is an old database that was damaged",
        "PROBLEM --worker-program: cannot run /no/such/worker",
        "warning data folder /no/such/data: does not exist", "/token: is not a folder; name its folder",
        "/loop: user ", " cannot reach it: Too many levels of symbolic links",
        "PROBLEM TLS certificate /no/such/cert.pem: cannot read"}) {
    EXPECT_THAT(wrong, HasSubstr(part));
  }
}

TEST_F(CheckTest, ATokenThatTheDaemonRefuses) {
  std::filesystem::create_directories(options_.state_folder);
  chmod(options_.state_folder.c_str(), 0700);
  const std::string path = options_.state_folder + "/token";
  std::ofstream(path).close();
  chmod(path.c_str(), 0600);
  EXPECT_THAT(Wrong(), HasSubstr("PROBLEM token file " + path + ": cannot use the token file " + path +
                                 ": it has no token (16 to 256 characters of visible ASCII); remove it"));
  std::ofstream(path) << "0123456789abcdef0123456789abcdef\n";
  EXPECT_EQ(Wrong(), "");
}

TEST_F(CheckTest, ALockThatCannotBeOpened) {
  std::filesystem::create_directories(options_.state_folder + "/daemon.lock");
  chmod(options_.state_folder.c_str(), 0700);
  EXPECT_THAT(Wrong(), HasSubstr("PROBLEM " + options_.state_folder +
                                 "/daemon.lock: cannot be opened for reading and writing: Is a directory"));
}

// For example after another user ran a daemon on the folder.
TEST_F(CheckTest, PartsThatCannotBeWritten) {
  std::filesystem::create_directories(options_.state_folder + "/audit.log");
  chmod(options_.state_folder.c_str(), 0700);
  // Nobody may enter a file, not even root.
  const std::string uploads = options_.state_folder + "/uploads";
  std::ofstream(uploads).close();
  const std::string wrong = Wrong();
  EXPECT_THAT(wrong, HasSubstr("PROBLEM " + options_.state_folder +
                               "/audit.log: cannot be opened for reading and writing: Is a directory"));
  EXPECT_THAT(wrong, HasSubstr(absl::StrCat("PROBLEM ", uploads, ": user ", geteuid(),
                                            " may not write to it: Permission denied; give it to the user "
                                            "that runs tandemd")));
}

TEST_F(CheckTest, AWorkerProgramThatCannotStart) {
  options_.worker_program =
      Program("lacks", "echo 'libgloo.so.0: cannot open shared object file' >&2; exit 127");
  EXPECT_THAT(Wrong(),
              HasSubstr("PROBLEM --worker-program: cannot use " + options_.worker_program +
                        ": with --version it exits with code 127 and prints 'libgloo.so.0: cannot open "
                        "shared object file'; name the tandem-worker of this tandemd"));
  options_.worker_program = Program("another", "echo another 1.0; echo of another author");
  EXPECT_THAT(Wrong(), HasSubstr(" exits with code 0 and prints 'another 1.0'; name the tandem-worker"));
  options_.worker_program = Program("older", "echo tandem-worker 0.0.1");
  EXPECT_THAT(Wrong(), HasSubstr("warning --worker-program: " + options_.worker_program +
                                 " is tandem-worker 0.0.1; name the tandem-worker of this tandemd"));
  options_.worker_program = Program("script", "");
  std::ofstream(options_.worker_program) << "#!/no/such/interpreter\n";
  EXPECT_THAT(Wrong(),
              AllOf(HasSubstr("PROBLEM --worker-program: "), HasSubstr("No such file or directory")));
}

class ClusterCheckTest : public CheckTest {
 protected:
  ClusterCheckTest() {
    options_.shared_folder = folder_.path() + "/shared";
    // An address for documentation: no machine has it.
    options_.worker_listen = "192.0.2.1:7448";
    std::filesystem::create_directories(options_.shared_folder);
    std::filesystem::create_directories(folder_.path() + "/programs");
    if (const char* const path = getenv("PATH"); path != nullptr) path_ = path;
    setenv("PATH", (folder_.path() + "/programs").c_str(), 1);
    for (const char* program : {"sbatch", "squeue", "scancel"}) Fake(program, "exit 0");
    Fake("sinfo", "echo 'tandem-partition|work*|up|infinite|2|idle|1|0/2/0/2|(null)|tandem-end'");
  }
  ~ClusterCheckTest() override { setenv("PATH", path_.c_str(), 1); }

  void Fake(const std::string& program, const std::string& code) { Program("programs/" + program, code); }

  std::string path_;
};

TEST_F(ClusterCheckTest, TheAddressIsOfThisMachine) {
  EXPECT_THAT(Wrong(), AllOf(HasSubstr("PROBLEM --worker-listen 192.0.2.1:7448: "),
                             HasSubstr("the host is not an address of this machine; choose another with "
                                       "--worker-listen\n")));
}

// Only a port in use may be the running daemon's.
TEST_F(ClusterCheckTest, ARunningDaemonExcusesNoWrongAddress) {
  const auto state = StateFolder::Lock(options_.state_folder);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_THAT(Wrong(), HasSubstr("PROBLEM --worker-listen 192.0.2.1:7448: cannot listen on"));
  const TakenPort taken;
  options_.worker_listen = absl::StrCat("127.0.0.1:", taken.port());
  // Each machine has this address. As an option, the address is a fault.
  const std::vector<Check> checks = CheckCluster(options_, /*faults=*/{}, /*is_running=*/true);
  ASSERT_EQ(checks.size(), 3);
  EXPECT_EQ(checks[1].verdict, Verdict::kFine) << checks[1].message;
}

TEST_F(ClusterCheckTest, AFaultOfAnOptionDoesNotHideOthers) {
  options_.worker_listen = "login:7448";
  options_.slurm_allow_arguments = {"constraint", "--nice"};
  options_.shared_folder += "/none";
  std::filesystem::remove(folder_.path() + "/programs/sbatch");
  EXPECT_THAT(
      Wrong(),
      AllOf(HasSubstr("PROBLEM --worker-listen: is 'login:7448'; must be an address"),
            HasSubstr("PROBLEM --slurm-allow-argument: is '--nice'; must be the name of a long option"),
            HasSubstr("/none: No such file or directory"), HasSubstr("PROBLEM Slurm: ")));
  EXPECT_THAT(Wrong(), Not(HasSubstr("--worker-listen login:7448")));
  options_.shared_folder = "shared";
  options_.worker_listen = "";
  EXPECT_THAT(Wrong(), AllOf(HasSubstr("PROBLEM --shared-folder: needs --worker-listen"),
                             HasSubstr("PROBLEM --shared-folder: is 'shared'; must be an absolute path")));
}

TEST_F(ClusterCheckTest, TheSharedFolderIsWritableAndFree) {
  EXPECT_THAT(Wrong(), Not(HasSubstr("shared folder")));
  std::ofstream(options_.shared_folder + "/tandem-daemon") << "/other/state\n";
  EXPECT_THAT(Wrong(), AllOf(HasSubstr("PROBLEM shared folder " + options_.shared_folder + ": "),
                             HasSubstr(": the daemon of the state folder /other/state uses it")));
  std::filesystem::create_directories(options_.state_folder);
  std::ofstream(options_.shared_folder + "/tandem-daemon")
      << std::filesystem::canonical(options_.state_folder).string() << "\n";
  EXPECT_THAT(Wrong(), Not(HasSubstr("shared folder")));
  options_.shared_folder += "/none";
  EXPECT_THAT(Wrong(), HasSubstr("/none: No such file or directory; it must exist"));
}

// An earlier daemon without a cluster has jobs.
TEST_F(ClusterCheckTest, TheStateFolderCanBeShared) {
  std::filesystem::create_directories(options_.state_folder + "/jobs/lenet-1");
  EXPECT_THAT(Wrong(), HasSubstr("/state/jobs with a cluster: it has content; stop the daemon, move its "
                                 "content to "));
  EXPECT_TRUE(std::filesystem::is_empty(options_.shared_folder)) << "the check changed it";
  std::filesystem::remove(options_.state_folder + "/jobs/lenet-1");
  EXPECT_THAT(Wrong(), Not(HasSubstr("shared folder")));
}

// A program in place of ssh runs the scripts here.
TEST_F(ClusterCheckTest, HostsAnswerAndHaveThePaths) {
  setenv("PATH", (folder_.path() + "/programs:" + path_).c_str(), 1);
  options_.worker_program = Program("worker", "");
  options_.ssh_hosts = {"gpu1"};
  Fake("ssh", "exec /bin/sh -s");
  EXPECT_THAT(Wrong(), AllOf(Not(HasSubstr("gpu1")), Not(HasSubstr("Slurm"))));
  // Another folder of this path.
  Fake("ssh", "sed 's,/tandem-check-,/none-,' | /bin/sh -s");
  EXPECT_THAT(Wrong(), HasSubstr("PROBLEM host gpu1: host gpu1 lacks " + options_.shared_folder + "/none-"));
  Fake("ssh", "echo 'Host key verification failed.' >&2; exit 255");
  EXPECT_THAT(Wrong(),
              HasSubstr("warning host gpu1: cannot reach host gpu1: Host key verification failed.; try "
                        "`ssh gpu1 true` as the daemon's user"));
  Fake("ssh", "echo 'no Linux'");
  EXPECT_THAT(Wrong(), HasSubstr("PROBLEM host gpu1: cannot read the size of host gpu1"));
}

TEST_F(ClusterCheckTest, SlurmsProgramsAreThere) {
  EXPECT_THAT(Wrong(), Not(HasSubstr("Slurm")));
  Fake("sinfo", "echo 'slurm_load_partitions: Unable to contact slurm controller' >&2; exit 1");
  EXPECT_THAT(Wrong(), HasSubstr("warning Slurm: cannot reach Slurm: "));
  std::filesystem::remove(folder_.path() + "/programs/sbatch");
  EXPECT_THAT(Wrong(), AllOf(HasSubstr("PROBLEM Slurm: "), HasSubstr("sbatch"), HasSubstr("slurm-client")));
}

TEST_F(CheckTest, AFileInTheStateFoldersPlace) {
  std::ofstream(options_.state_folder) << "x";
  EXPECT_THAT(Wrong(), HasSubstr("is not a folder"));
}

}  // namespace
}  // namespace tandem
