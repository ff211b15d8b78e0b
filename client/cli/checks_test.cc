// Tests of `tandem doctor` and its checks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/app.h"
#include "client/cli/cluster_checks.h"
#include "client/cli/daemon_checks.h"
#include "client/cli/fake_terminal.h"
#include "client/cli/machine_checks.h"
#include "client/lib/fake_daemon.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns a line for each finding: "level subject: message | mend".
std::string Lines(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    absl::StrAppend(&text,
                    finding.level == Finding::Level::kFine   ? "ok "
                    : finding.level == Finding::Level::kNote ? "note "
                                                             : "problem ",
                    finding.subject, ": ", finding.message, finding.mend.empty() ? "" : " | ", finding.mend,
                    "\n");
  }
  return text;
}

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-doctor-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  void Write(const std::string& name, const std::string& content, mode_t mode = 0600) {
    const std::filesystem::path file = path_ + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
    chmod(file.c_str(), mode);
  }

 private:
  std::string path_;
};

// A machine with a daemon. `root` has its /proc and other system paths.
class MachineTest : public testing::Test {
 protected:
  MachineTest() {
    daemon_.set_state_folder(root_.path() + "/state");
    root_.Write("state/daemon.lock", "1234\n");
    root_.Write("proc/1234/limits",
                "Limit                     Soft Limit           Hard Limit           Units     \n"
                "Max processes             95815                95815                processes \n"
                "Max open files            65536                1048576              files     \n");
    root_.Write("proc/1234/cgroup", "0::/system.slice/tandem.service\n");
    std::filesystem::create_directories(root_.path() + "/dev/shm");
    v1::Device cpu;
    cpu.set_kind(v1::DEVICE_KIND_CPU);
    cpu.set_threads(4);
    cpu.set_memory_bytes(int64_t{8} << 30);
    devices_ = {cpu, cpu};
  }
  std::string Check() { return Lines(CheckMachine(daemon_, devices_, root_.path())); }
  void AddGpu() {
    v1::Device gpu;
    gpu.set_kind(v1::DEVICE_KIND_GPU);
    devices_.push_back(gpu);
  }

  Folder root_;
  v1::Daemon daemon_;
  std::vector<v1::Device> devices_;
};

TEST_F(MachineTest, KnowsWhetherTheDaemonIsHere) {
  EXPECT_TRUE(IsDaemonHere(daemon_, root_.path()));
  std::filesystem::remove_all(root_.path() + "/proc/1234");
  EXPECT_FALSE(IsDaemonHere(daemon_, root_.path()));
  daemon_.set_state_folder("/no/such/folder");
  EXPECT_FALSE(IsDaemonHere(daemon_, root_.path()));
  EXPECT_FALSE(IsDaemonHere(v1::Daemon(), root_.path()));
}

TEST_F(MachineTest, ARestorationIsToldForAWeek) {
  EXPECT_THAT(Check(), Not(HasSubstr("database")));
  // The file itself may be written later, or copied.
  const auto restored = [this](absl::Duration ago) {
    root_.Write(
        "state/tandem.db.restoration",
        absl::StrCat("time=", absl::FormatTime(absl::RFC3339_full, absl::Now() - ago, absl::UTCTimeZone()),
                     "\nbackup=/b.db\ntold=yes\n"));
  };
  restored(absl::Hours(3));
  EXPECT_THAT(Check(), HasSubstr("note database: a backup replaced it 3 h ago"));
  restored(absl::Hours(24 * 8));
  EXPECT_THAT(Check(), Not(HasSubstr("database")));
}

TEST_F(MachineTest, LimitsAreEnough) {
  EXPECT_THAT(Check(), HasSubstr("ok limits: "));
  EXPECT_THAT(Check(), Not(HasSubstr("problem limits")));
  EXPECT_THAT(Check(), Not(HasSubstr("control group")));
  EXPECT_THAT(Check(), Not(HasSubstr("GPU driver")));
}

TEST_F(MachineTest, LimitsAreTooSmall) {
  root_.Write("proc/1234/limits",
              "Max processes   unlimited  unlimited  processes\nMax open files  1024  1024  files\n");
  root_.Write("sys/fs/cgroup/system.slice/tandem.service/cpu.max", "max 100000\n");
  root_.Write("sys/fs/cgroup/system.slice/cpu.max", "250000 100000\n");
  root_.Write("sys/fs/cgroup/system.slice/tandem.service/memory.max", "4294967296\n");
  const std::string found = Check();
  EXPECT_THAT(found, HasSubstr("problem limits: the daemon may open only 1024 files | "));
  EXPECT_THAT(found,
              HasSubstr("problem control group: it has 2.5 processors, but the CPU devices have 8 threads"));
  EXPECT_THAT(found, HasSubstr("workers will be killed"));
}

TEST_F(MachineTest, TheWorkersSandbox) {
  root_.Write("proc/sys/kernel/seccomp/actions_avail", "kill_process errno allow\n");
  EXPECT_THAT(Check(), HasSubstr("ok worker sandbox: the kernel filters system calls\n"));
  root_.Write("sys/kernel/security/lsm", "capability,landlock,yama\n");
  EXPECT_THAT(Check(), HasSubstr("ok worker sandbox: the kernel has Landlock and filters system calls\n"));
  root_.Write("sys/kernel/security/lsm", "capability,yama\n");
  EXPECT_THAT(Check(), HasSubstr("note worker sandbox: the kernel has no Landlock, so workers"));
  std::filesystem::remove(root_.path() + "/proc/sys/kernel/seccomp/actions_avail");
  EXPECT_THAT(Check(), HasSubstr("the kernel has no Landlock and no filters of system calls (seccomp), so"));
}

TEST_F(MachineTest, TheClustersOptions) {
  EXPECT_THAT(Check(), Not(HasSubstr("shared folder")));
  const std::string shared = root_.path() + "/shared";
  const std::string options =
      absl::StrCat("tandemd", std::string(1, '\0'), "--worker-listen=127.0.0.1:1", std::string(1, '\0'));
  root_.Write("proc/1234/cmdline", absl::StrCat(options, "--shared-folder", std::string(1, '\0'), shared));
  EXPECT_THAT(Check(), HasSubstr("problem shared folder: cannot reach " + shared + ": No such file"));
  EXPECT_THAT(Check(), HasSubstr("problem worker address: the daemon does not answer at 127.0.0.1:1, where"));
  std::filesystem::create_directories(shared);
  EXPECT_THAT(Check(), HasSubstr(" are free in " + shared));
  // The options may be in the file of --config.
  root_.Write("tandemd.yaml", absl::StrCat("shared-folder: ", shared, "\nworker-listen: 127.0.0.1:2\n"));
  root_.Write("proc/1234/cmdline", absl::StrCat("tandemd", std::string(1, '\0'), "--config",
                                                std::string(1, '\0'), root_.path(), "/tandemd.yaml"));
  EXPECT_THAT(Check(), HasSubstr("problem worker address: the daemon does not answer at 127.0.0.1:2, where"));
}

TEST_F(MachineTest, TheGpuDriver) {
  root_.Write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  root_.Write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  root_.Write("sys/bus/pci/devices/0000:02:00.0/vendor", "0x8086\n");
  root_.Write("sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n");
  EXPECT_THAT(Check(),
              HasSubstr("problem GPU driver: NVIDIA's driver is not loaded, but there are 1 of its GPUs"));
  root_.Write("proc/driver/nvidia/version", "NVRM version: 580.95\nGCC\n");
  EXPECT_THAT(
      Check(),
      HasSubstr("problem GPU driver: it is loaded (NVRM version: 580.95), but the daemon has no GPU"));
  AddGpu();
  EXPECT_THAT(Check(), HasSubstr("ok GPU driver: NVRM version: 580.95\n"));
}

TEST_F(MachineTest, FoldersAndCrashes) {
  root_.Write("state/crash-1.txt", "a stack");
  const std::string loop = root_.path() + "/loop";
  std::filesystem::create_symlink(loop, loop);
  daemon_.add_data_folders("/no/such/data");
  daemon_.add_data_folders(root_.path() + "/state/crash-1.txt");
  daemon_.add_data_folders(loop);
  const std::string found = Check();
  EXPECT_THAT(found, HasSubstr("note data folders: /no/such/data does not exist | mount it"));
  EXPECT_THAT(found, HasSubstr("crash-1.txt is not a folder | name its folder"));
  EXPECT_THAT(found, HasSubstr("this user cannot reach " + loop + ": Too many levels of symbolic links |"));
  EXPECT_THAT(found, HasSubstr("note crashes: reports of the daemon's crashes: 1, in "));
  EXPECT_THAT(found, HasSubstr(" disk: "));
}

TEST(DevicesTest, SayWhyTheyTakeNoJobs) {
  EXPECT_THAT(Lines(CheckDevices({})), HasSubstr("problem devices: the daemon has no devices"));
  v1::Device excluded;
  excluded.set_name("devices/gpu:0");
  excluded.set_state(v1::DEVICE_STATE_EXCLUDED);
  excluded.set_state_message("two jobs crashed on it");
  excluded.mutable_gpu()->set_ecc_uncorrected_errors(2);
  excluded.mutable_gpu()->mutable_last_error()->set_xid(79);
  v1::Device drained = excluded;
  drained.set_name("devices/cpu:1");
  drained.set_state(v1::DEVICE_STATE_DRAINED);
  drained.clear_gpu();
  std::string found = Lines(CheckDevices({excluded, drained}));
  EXPECT_THAT(found, HasSubstr("problem devices: gpu:0 is out of service: two jobs crashed on it | repair "
                               "it, then: tandem devices resume gpu:0\n"));
  EXPECT_THAT(found, HasSubstr("problem devices: gpu:0 had 2 errors"));
  EXPECT_THAT(found, HasSubstr("note devices: gpu:0: its driver reported XID 79"));
  EXPECT_THAT(found, HasSubstr("note devices: cpu:1 is drained"));
  EXPECT_THAT(found, HasSubstr("problem devices: no device takes jobs"));
  v1::Device active;
  active.set_name("devices/cpu:0");
  active.set_state(v1::DEVICE_STATE_ACTIVE);
  EXPECT_EQ(Lines(CheckDevices({active})), "ok devices: 1 of 1 take jobs\n");
}

TEST(PartitionsTest, SaysWhatSlurmAnswers) {
  v1::ListDevicesResponse cluster;
  EXPECT_EQ(Lines(CheckPartitions(cluster)), "");
  cluster.set_partitions_message("cannot reach Slurm: sinfo ended with code 1");
  EXPECT_THAT(Lines(CheckPartitions(cluster)),
              HasSubstr("problem cluster: cannot reach Slurm: sinfo ended with code 1 | run `sinfo`"));
  cluster.clear_partitions_message();
  v1::ClusterPartition& work = *cluster.add_partitions();
  work.set_name("work");
  cluster.add_partitions()->set_name("old");
  EXPECT_THAT(Lines(CheckPartitions(cluster)),
              HasSubstr("problem cluster: the cluster answers, but no partition"));
  work.set_is_up(true);
  EXPECT_THAT(Lines(CheckPartitions(cluster)), HasSubstr("note cluster: Slurm has no default partition"));
  work.set_is_default(true);
  v1::ClusterPartition& old = *cluster.mutable_partitions(1);
  old.set_nodes(4);
  const std::string lines = Lines(CheckPartitions(cluster));
  EXPECT_THAT(lines, HasSubstr("ok cluster: the cluster answers; 1 of 2 partitions take jobs\n"));
  EXPECT_THAT(lines,
              HasSubstr("note cluster: the partition \"old\" starts no jobs: it is down, or all of its 4 "
                        "nodes are down | run `sinfo -R`"));
  work.set_is_default(false);
  old.set_is_default(true);
  EXPECT_THAT(Lines(CheckPartitions(cluster)),
              HasSubstr("problem cluster: the partition \"old\" starts no jobs"));
  old.set_is_up(true);
  EXPECT_EQ(Lines(CheckPartitions(cluster)),
            "ok cluster: the cluster answers; 2 of 2 partitions take jobs\n");
}

TEST(QueueTest, SaysWhatWaitsForEver) {
  v1::ListQueueResponse queue;
  EXPECT_EQ(Lines(CheckQueue(queue)), "ok queue: no jobs wait\n");
  v1::QueuedJob job;
  job.set_job("jobs/a");
  job.mutable_waiting()->set_reason(v1::Waiting::REASON_DEVICES_BUSY);
  *queue.add_jobs() = job;
  queue.set_total_size(1);
  EXPECT_EQ(Lines(CheckQueue(queue)), "ok queue: 1 job waits for its turn\n");
  for (int i = 0; i < 7; ++i) {
    job.set_job(absl::StrCat("jobs/b", i));
    job.mutable_waiting()->set_reason(v1::Waiting::REASON_DEVICES_MISSING);
    job.mutable_waiting()->set_message("the daemon has no GPU");
    *queue.add_jobs() = job;
  }
  EXPECT_THAT(Lines(CheckQueue(queue)),
              HasSubstr("problem queue: b0, b1, b2, b3, b4 and 2 more: the daemon has no GPU"));
}

class DoctorTest : public testing::Test {
 protected:
  DoctorTest() {
    terminal_.environment["TANDEM_ADDRESS"] = daemon_.address();
    terminal_.environment["TANDEM_STATE"] = folder_.path();
    folder_.Write("token", "0123456789abcdef\n");
    daemon_.get_daemon = [this](grpc::ServerContext* context, v1::Daemon* daemon) -> grpc::Status {
      daemon->set_version(version_);
      context->AddInitialMetadata("tandem-time-ms", absl::StrCat(absl::ToUnixMillis(absl::Now() + lead_)));
      return grpc::Status::OK;
    };
    daemon_.list_devices = [](v1::ListDevicesResponse* response) -> grpc::Status {
      response->add_devices()->set_name("devices/cpu:0");
      response->mutable_devices(0)->set_state(v1::DEVICE_STATE_ACTIVE);
      return grpc::Status::OK;
    };
    daemon_.list_queue = [](v1::ListQueueResponse*) -> grpc::Status { return grpc::Status::OK; };
    daemon_.list_datasets = [](v1::ListDatasetsResponse*) -> grpc::Status { return grpc::Status::OK; };
    // Reads this program's version.
    FakeTerminal terminal;
    terminal.environment = terminal_.environment;
    RunCommand({"version", "-o", "json"}, terminal);
    version_ = nlohmann::json::parse(terminal.out())["client"];
  }
  int Run(const std::vector<std::string>& arguments) { return RunCommand(arguments, terminal_); }

  Folder folder_;
  client::FakeDaemon daemon_;
  FakeTerminal terminal_;
  std::string version_ = "0.0.0";
  absl::Duration lead_;
};

TEST_F(DoctorTest, NothingIsToBeMended) {
  EXPECT_EQ(Run({"doctor"}), 0) << terminal_.out();
  for (const char* part :
       {"ok       daemon: answers at ", "ok       versions: ", "ok       clock: ", "ok       token: ",
        "ok       queue: ", "note     machine: ", "\nno faults found\n"}) {
    EXPECT_THAT(terminal_.out(), HasSubstr(part));
  }
}

TEST_F(DoctorTest, SaysWhatIsToBeMended) {
  lead_ = -absl::Minutes(3);
  version_ = "9.9.9";
  folder_.Write("token", "0123456789abcdef\n", 0644);
  daemon_.list_queue = nullptr;
  EXPECT_EQ(Run({"doctor"}), 1);
  for (const char* part :
       {"problem  versions: ", "problem  clock: the daemon's is 3 min", " behind this machine's\n",
        "problem  token: others may use ", "chmod 600 ", "problem  queue: ", " faults found\n"}) {
    EXPECT_THAT(terminal_.out(), HasSubstr(part));
  }
}

TEST_F(DoctorTest, WaitsForDataSetsAsForOtherAnswers) {
  daemon_.list_datasets = [](v1::ListDatasetsResponse*) -> grpc::Status {
    absl::SleepFor(absl::Seconds(3));
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"doctor", "--timeout", "1"}), 1);
  EXPECT_THAT(terminal_.out(), HasSubstr("problem  data sets: the daemon at "));
  EXPECT_THAT(terminal_.out(), HasSubstr(" did not answer in time"));
  // The completion waits for names.
  EXPECT_EQ(Run({"__datasets", "--timeout", "1"}), 4);
}

TEST_F(DoctorTest, Json) {
  lead_ = absl::Hours(1);
  EXPECT_EQ(Run({"doctor", "--json"}), 1);
  const nlohmann::json json = nlohmann::json::parse(terminal_.out());
  EXPECT_EQ(json["problems"], 1);
  for (const nlohmann::json& finding : json["findings"]) {
    EXPECT_EQ(finding["level"] == "problem", finding["subject"] == "clock") << finding;
    EXPECT_EQ(finding["level"] == "ok", !finding.contains("mend")) << finding;
  }
}

TEST_F(DoctorTest, WithoutADaemon) {
  terminal_.environment["TANDEM_ADDRESS"] = "127.0.0.1:1";
  EXPECT_EQ(Run({"doctor", "--timeout", "2"}), 1);
  EXPECT_THAT(terminal_.out(), HasSubstr("problem  daemon: no daemon answers at 127.0.0.1:1"));
  EXPECT_THAT(terminal_.out(), HasSubstr("Start one with `tandemd`"));
}

}  // namespace
}  // namespace tandem::cli
