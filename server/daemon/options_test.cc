#include "server/daemon/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ConfigFile(const std::string& content) {
  static int count = 0;
  std::string path = ::testing::TempDir() + "/options_test_" + std::to_string(++count) + ".yaml";
  std::ofstream(path) << content;
  return path;
}

std::string ErrorOf(const std::vector<std::string>& arguments) {
  const absl::StatusOr<ParsedOptions> parsed = ParseDaemonOptions(arguments);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}

// Other programs have another working directory.
TEST(DaemonOptionsTest, DataFoldersAreAbsolute) {
  const absl::StatusOr<ParsedOptions> parsed =
      ParseDaemonOptions({"--data-folder", "data", "--data-folder=/b/"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(parsed->options.data_folders,
              ElementsAre((std::filesystem::current_path() / "data").string(), "/b/"));
}

TEST(DaemonOptionsTest, HasDefaults) {
  const absl::StatusOr<ParsedOptions> parsed = ParseDaemonOptions({});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.cancel_grace, absl::Minutes(2));
  EXPECT_EQ(parsed->options.worker_silence_limit, absl::Seconds(30));
  EXPECT_EQ(parsed->options.collective_time_limit, absl::Minutes(30));
  EXPECT_EQ(parsed->text, "");
  EXPECT_EQ(parsed->options.listen, "127.0.0.1:7447");
  EXPECT_THAT(parsed->options.data_folders, ElementsAre("/usr/share/datasets"));
  EXPECT_THAT(parsed->options.worker_program, HasSubstr("tandem-worker"));
  EXPECT_FALSE(parsed->options.state_folder.empty());
  EXPECT_FALSE(parsed->options.insecure_listen_beyond_loopback);
}

TEST(DaemonOptionsTest, TakesTheStateFolderFromTheEnvironment) {
  ASSERT_EQ(setenv("TANDEM_STATE", "/from-environment", 1), 0);
  const absl::StatusOr<ParsedOptions> environment = ParseDaemonOptions({});
  const absl::StatusOr<ParsedOptions> flag = ParseDaemonOptions({"--state-folder", "/from-flag"});
  ASSERT_EQ(unsetenv("TANDEM_STATE"), 0);
  ASSERT_TRUE(environment.ok() && flag.ok());
  EXPECT_EQ(environment->options.state_folder, "/from-environment");
  EXPECT_EQ(flag->options.state_folder, "/from-flag");
}

TEST(DaemonOptionsTest, ACollectivesTimeHasBounds) {
  const absl::StatusOr<ParsedOptions> parsed = ParseDaemonOptions({"--collective-time-limit", "90s"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.collective_time_limit, absl::Seconds(90));
  for (const char* text : {"0s", "999ms", "25h", "inf", "90"}) {
    EXPECT_THAT(ErrorOf({"--collective-time-limit", text}),
                HasSubstr(absl::StrCat("--collective-time-limit: must be a duration from 1s to 24h such as "
                                       "30s or 2m, not '",
                                       text, "'")));
  }
}

// A worker that is killed between two looks for its daemon was healthy.
TEST(DaemonOptionsTest, AWorkersSilenceIsSeveralOfItsLooksForADaemon) {
  const absl::StatusOr<ParsedOptions> parsed = ParseDaemonOptions({"--worker-silence-limit", "5s"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.worker_silence_limit, absl::Seconds(5));
  for (const char* text : {"1s", "4999ms", "0s", "-30s", "25h", "soon"}) {
    EXPECT_THAT(
        ErrorOf({"--worker-silence-limit", text}),
        HasSubstr(absl::StrCat("--worker-silence-limit: must be a duration from 5s to 24h such as 30s "
                               "or 2m, not '",
                               text, "': a healthy worker looks for its daemon every 1s")));
  }
}

TEST(DaemonOptionsTest, ReadsFlags) {
  const absl::StatusOr<ParsedOptions> parsed = ParseDaemonOptions({"--state-folder",
                                                                   "/s",
                                                                   "--data-folder",
                                                                   "/a",
                                                                   "--data-folder",
                                                                   "/b",
                                                                   "--cpu-devices=3",
                                                                   "--threads-per-cpu-device",
                                                                   "2",
                                                                   "--memory",
                                                                   "2GiB",
                                                                   "--listen",
                                                                   "[::1]:0",
                                                                   "--reference-devices",
                                                                   "1",
                                                                   "--gpu-memory-limit",
                                                                   "20GiB",
                                                                   "--gpu-workspace-limit=64MiB",
                                                                   "--insecure-listen-beyond-loopback",
                                                                   "--log-format",
                                                                   "json"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.gpu_memory_limit, int64_t{20} << 30);
  EXPECT_EQ(parsed->options.gpu_workspace_limit, int64_t{64} << 20);
  EXPECT_EQ(parsed->options.state_folder, "/s");
  EXPECT_THAT(parsed->options.data_folders, ElementsAre("/a", "/b"));
  EXPECT_EQ(parsed->options.cpu_devices, 3);
  EXPECT_EQ(parsed->options.threads_per_cpu_device, 2);
  EXPECT_EQ(parsed->options.reference_devices, 1);
  EXPECT_EQ(parsed->options.memory_bytes, int64_t{2} << 30);
  EXPECT_EQ(parsed->options.listen, "[::1]:0");
  EXPECT_TRUE(parsed->options.insecure_listen_beyond_loopback);
  EXPECT_EQ(parsed->options.log_format, "json");
}

TEST(DaemonOptionsTest, HelpAndVersionAreTexts) {
  const absl::StatusOr<ParsedOptions> help = ParseDaemonOptions({"--help"});
  ASSERT_TRUE(help.ok());
  for (const char* part :
       {"--state-folder", "--config", "--tls-cert", "Examples:", "127.0.0.1:7447", "Devices:"}) {
    EXPECT_THAT(help->text, HasSubstr(part));
  }
  const absl::StatusOr<ParsedOptions> version = ParseDaemonOptions({"--version"});
  ASSERT_TRUE(version.ok());
  EXPECT_THAT(version->text, HasSubstr("tandemd "));
}

TEST(DaemonOptionsTest, SuggestsTheFlagThatWasMeant) {
  EXPECT_THAT(ErrorOf({"--state-foldr", "/s"}), HasSubstr("did you mean --state-folder?"));
  EXPECT_THAT(ErrorOf({"--cpu-devices", "-1"}), HasSubstr("--cpu-devices"));
  EXPECT_THAT(ErrorOf({"--log-level", "loud"}), HasSubstr("--log-level"));
  EXPECT_THAT(ErrorOf({"--memory", "lots"}), HasSubstr("--memory"));
  EXPECT_THAT(ErrorOf({"--cancel-grace", "soon"}), HasSubstr("--cancel-grace"));
  EXPECT_THAT(ErrorOf({"--cancel-grace", "-1s"}), HasSubstr("such as 30s"));
  EXPECT_THAT(ErrorOf({"--tls-cert", "c.pem"}), HasSubstr("together"));
  EXPECT_THAT(ErrorOf({"--tls-client-ca", "c.pem"}), HasSubstr("needs --tls-cert"));
}

TEST(DaemonOptionsTest, ReadsAFileAndFlagsCountMore) {
  const std::string file = ConfigFile(
      "# a daemon\nstate_folder: /from-file\nlisten: 127.0.0.1:1\ncpu-devices: 4\ndata-folder: [/a, "
      "/b]\ncancel-grace: 1m\n"
      "insecure-listen-beyond-loopback: true\nlog-level:\n");
  const absl::StatusOr<ParsedOptions> parsed =
      ParseDaemonOptions({"--config", file, "--listen", "127.0.0.1:2"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.state_folder, "/from-file");
  EXPECT_EQ(parsed->options.listen, "127.0.0.1:2");
  EXPECT_EQ(parsed->options.cpu_devices, 4);
  EXPECT_EQ(parsed->options.cancel_grace, absl::Minutes(1));
  EXPECT_THAT(parsed->options.data_folders, ElementsAre("/a", "/b"));
  EXPECT_TRUE(parsed->options.insecure_listen_beyond_loopback);
  EXPECT_EQ(parsed->options.log_level, "info");
}

TEST(DaemonOptionsTest, SaysWhatIsWrongInAFile) {
  const std::string unknown = ErrorOf({"--config", ConfigFile("listen: 127.0.0.1:1\ncpu_device: 4\n")});
  EXPECT_THAT(unknown, HasSubstr("line 2"));
  EXPECT_THAT(unknown, HasSubstr("did you mean 'cpu-devices'?"));
  EXPECT_THAT(ErrorOf({"--config", ConfigFile("cpu-devices: 1\ncpu_devices: 2\n")}), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf({"--config", ConfigFile("listen: {host: x}\n")}), HasSubstr("listen"));
  EXPECT_THAT(ErrorOf({"--config", ConfigFile("- listen\n")}), HasSubstr("mapping"));
  EXPECT_THAT(ErrorOf({"--config", ConfigFile("listen: [\n")}), HasSubstr("line"));
  EXPECT_THAT(ErrorOf({"--config", ConfigFile("cpu-devices: many\n")}), HasSubstr("many"));
  EXPECT_THAT(ErrorOf({"--config", ConfigFile("fetch-from: []\n")}),
              HasSubstr("'fetch-from' is an empty list"));
  EXPECT_THAT(ErrorOf({"--config", ConfigFile("listen: 127.0.0.1:1\n---\nnothing: 1\n")}),
              HasSubstr("second document"));
  // yaml-cpp's LoadAll makes documents without end from this text.
  EXPECT_THAT(ErrorOf({"--config", ConfigFile(",listen: 127.0.0.1:1\n")}), HasSubstr("second document"));
  // Without the error, the last two options would be text of the first.
  EXPECT_THAT(ErrorOf({"--config", ConfigFile("cpu-devices: 1\ndata-folder: \"/a\nlog-level: debug\n")}),
              HasSubstr("line 2: a quote begins here and does not end"));
  // The error names the file.
  for (const char* content : {"listen: [\n", "cpu-devices: many\n"}) {
    const std::string file = ConfigFile(content);
    EXPECT_THAT(ErrorOf({"--config", file}), HasSubstr(absl::StrCat("--config file ", file)));
  }
  EXPECT_THAT(ErrorOf({"--config", "/no/such/file.yaml"}),
              HasSubstr("cannot read the --config file /no/such/file.yaml: No such file or directory; name a "
                        "file that user "));
  EXPECT_THAT(ErrorOf({"--config", "/tmp"}),
              HasSubstr("cannot read the --config file /tmp: Is a directory; name a file in it"));
  EXPECT_THAT(ErrorOf({"--config", "--check"}),
              HasSubstr("--config: needs a value before the option '--check'"));
  EXPECT_THAT(ErrorOf({"--config", ConfigFile("metrics-beyond-loopback: perhaps\n")}),
              AllOf(HasSubstr("--metrics-beyond-loopback"), HasSubstr("must be true or false")));
  EXPECT_THAT(
      ErrorOf({"--config", ConfigFile("listen: 127.0.0.1:1\n"), "--config", ConfigFile("cpu-devices: 1\n")}),
      HasSubstr("--config"));
  EXPECT_THAT(ErrorOf({"--config", ConfigFile("config: other.yaml\n")}), HasSubstr("no option 'config'"));
}

TEST(DaemonOptionsTest, TellsWhichOptionThereIsNot) {
  for (const char* known : {"--check", "--begin-anew", "--restore-backup=x"}) {
    EXPECT_THAT(ErrorOf({known, "--nosuch"}), HasSubstr("no option --nosuch")) << known;
  }
}

// The suggestions include the options that a file cannot have.
TEST(DaemonOptionsTest, SuggestsEveryOption) {
  EXPECT_THAT(ErrorOf({"--chek"}), HasSubstr("did you mean --check?"));
  EXPECT_THAT(ErrorOf({"--restore-bakup", "x"}), HasSubstr("did you mean --restore-backup?"));
  EXPECT_THAT(ErrorOf({"--begin-new"}), HasSubstr("did you mean --begin-anew?"));
  EXPECT_THAT(ErrorOf({"--confg", "x"}), HasSubstr("did you mean --config?"));
}

// An empty variable of a script must not start a daemon instead of a restoration.
TEST(DaemonOptionsTest, ValuesThatMustNotBeEmpty) {
  for (const char* option :
       {"--restore-backup", "--config", "--state-folder", "--data-folder", "--worker-program"}) {
    EXPECT_THAT(ErrorOf({option, ""}), HasSubstr(absl::StrCat(option, " is empty; give a value"))) << option;
  }
  EXPECT_THAT(ErrorOf({"--config", ConfigFile("data-folder: [/a, \"\"]\n")}),
              HasSubstr("--data-folder is empty"));
  EXPECT_TRUE(ParseDaemonOptions({"--metrics-listen", ""}).ok());
}

TEST(DaemonOptionsTest, ATildeIsForTheShell) {
  EXPECT_THAT(ErrorOf({"--state-folder=~/tandem"}),
              HasSubstr("--state-folder is '~/tandem', but tandemd does not expand ~; write the whole path"));
  EXPECT_THAT(ErrorOf({"--config", ConfigFile("data-folder: [/a, ~/data]\n")}),
              HasSubstr("--data-folder is '~/data'"));
  EXPECT_THAT(ErrorOf({"--tls-cert", "~ann/c.pem", "--tls-key", "k.pem"}),
              HasSubstr("--tls-cert is '~ann/c.pem'"));
  EXPECT_TRUE(ParseDaemonOptions({"--state-folder", "./~/tandem"}).ok());
}

TEST(DaemonOptionsTest, ServersDoNotShareAPort) {
  for (const auto& [calls, metrics] :
       std::vector<std::pair<std::string, std::string>>{{"127.0.0.1:7447", "127.0.0.1:7447"},
                                                        {"0.0.0.0:7447", "127.0.0.1:7447"},
                                                        {"[::1]:7447", "[::]:7447"}}) {
    EXPECT_THAT(ErrorOf({"--listen", calls, "--metrics-listen", metrics}),
                HasSubstr("--metrics-listen " + metrics + "; give --metrics-listen another port"));
  }
  EXPECT_THAT(ErrorOf({"--shared-folder", "/shared", "--worker-listen", "10.0.0.1:7448", "--metrics-listen",
                       "0.0.0.0:7448"}),
              HasSubstr("cannot use one port for --worker-listen 10.0.0.1:7448 and --metrics-listen "
                        "0.0.0.0:7448; give --metrics-listen another port"));
  EXPECT_THAT(
      ErrorOf({"--shared-folder", "/shared", "--worker-listen", "[fd00::1]:7447", "--listen", "[::]:7447"}),
      HasSubstr("give --worker-listen another port"));
  EXPECT_TRUE(ParseDaemonOptions({"--shared-folder", "/shared", "--worker-listen", "[fd00::1]:7447",
                                  "--listen", "0.0.0.0:7447"})
                  .ok());
  EXPECT_TRUE(ParseDaemonOptions({"--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"}).ok());
  EXPECT_TRUE(ParseDaemonOptions({"--listen", "127.0.0.1:7447", "--metrics-listen", "127.0.0.2:7447"}).ok());
  EXPECT_TRUE(ParseDaemonOptions({"--listen", "127.0.0.1:7447", "--metrics-listen", "127.0.0.1:7448"}).ok());
}

TEST(DaemonOptionsTest, SizesWithoutAUnitAreSeldomMeant) {
  for (const char* flag : {"--memory", "--gpu-memory-limit", "--gpu-workspace-limit", "--user-max-disk",
                           "--cache-size", "--upload-limit", "--upload-space"}) {
    EXPECT_THAT(ErrorOf({flag, "20"}),
                HasSubstr(absl::StrCat(flag, ": is 20 bytes; it must be at least 1MiB")));
    for (const char* value : {"-5GiB", "16XB", "lots", "99999999999GiB", "nan"}) {
      EXPECT_THAT(
          ErrorOf({flag, value}),
          HasSubstr(absl::StrCat(flag, ": '", value, "' is not a size; write a size such as 500MiB")));
    }
  }
  EXPECT_THAT(ErrorOf({"--data-folder", "--check"}),
              HasSubstr("--data-folder: needs a value before the option '--check'"));
  EXPECT_THAT(ErrorOf({"--user-max-call-rate", "nan"}), HasSubstr("--user-max-call-rate: is not a number"));
  EXPECT_TRUE(ParseDaemonOptions({"--memory", "1MiB"}).ok());
}

TEST(DaemonOptionsTest, BackupsAreDailyUnlessToldOtherwise) {
  const auto usual = ParseDaemonOptions({});
  ASSERT_TRUE(usual.ok());
  EXPECT_EQ(usual->options.backup_every, absl::Hours(24));
  EXPECT_EQ(usual->options.backups_kept, 7);
  EXPECT_EQ(usual->options.restore_backup, "");
  const auto other = ParseDaemonOptions(
      {"--backup-every", "0s", "--backups-kept", "2", "--restore-backup", "20261122T141530Z"});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->options.backup_every, absl::ZeroDuration());
  EXPECT_EQ(other->options.backups_kept, 2);
  EXPECT_EQ(other->options.restore_backup, "20261122T141530Z");
  EXPECT_THAT(ErrorOf({"--backups-kept", "0"}), HasSubstr("--backups-kept"));
}

TEST(DaemonOptionsTest, JobsAreKeptForEverUnlessToldOtherwise) {
  const auto usual = ParseDaemonOptions({});
  ASSERT_TRUE(usual.ok());
  EXPECT_EQ(usual->options.keep_ended_jobs, absl::ZeroDuration());
  const auto flag = ParseDaemonOptions({"--keep-ended-jobs", "720h"});
  ASSERT_TRUE(flag.ok()) << flag.status();
  EXPECT_EQ(flag->options.keep_ended_jobs, absl::Hours(720));
  const auto file = ParseDaemonOptions({"--config", ConfigFile("keep-ended-jobs: 36h\n")});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->options.keep_ended_jobs, absl::Hours(36));
  const auto days = ParseDaemonOptions({"--keep-ended-jobs", "30d"});
  ASSERT_TRUE(days.ok()) << days.status();
  EXPECT_EQ(days->options.keep_ended_jobs, absl::Hours(720));
  for (const char* wrong : {"400d", "d", "nand", "-1d", "1e9d"}) {
    EXPECT_THAT(ErrorOf({"--keep-ended-jobs", wrong}), HasSubstr("from 0 to 365d such as 12h or 30d"))
        << wrong;
  }
  EXPECT_THAT(ErrorOf({"--keep-ended-jobs", "-1h"}), HasSubstr("--keep-ended-jobs"));
  EXPECT_THAT(ErrorOf({"--keep-ended-jobs", "30"}), HasSubstr("--keep-ended-jobs"));
}

TEST(DaemonOptionsTest, AClusterNeedsAFolderAndAnAddress) {
  const absl::StatusOr<ParsedOptions> parsed =
      ParseDaemonOptions({"--shared-folder", "/shared", "--worker-listen", "10.0.0.1:7448"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.shared_folder, "/shared");
  EXPECT_THAT(ErrorOf({"--shared-folder", "/shared"}), HasSubstr("must be given together"));
  EXPECT_THAT(ErrorOf({"--shared-folder", "shared", "--worker-listen", "10.0.0.1:1"}),
              HasSubstr("absolute path"));
  for (const char* address :
       {"login:7448", "0.0.0.0:7448", "[::]:7448", "[0::0]:7448", "10.0.0.1:0", "10.0.0.1",
        "10.0.0.1:", "[10.0.0.1]:7448", "::1:7448", "127.0.0.1:7448", "[::1]:7448"}) {
    EXPECT_THAT(
        ErrorOf({"--shared-folder", "/shared", "--worker-listen", address}),
        HasSubstr("an address of this machine that the nodes reach, and a port, such as 10.0.0.1:7448"))
        << address;
  }
  EXPECT_THAT(ErrorOf({"--ssh-host", "gpu1"}),
              HasSubstr("--ssh-host needs --shared-folder and --worker-listen"));
  EXPECT_THAT(
      ErrorOf({"--shared-folder", "/shared", "--worker-listen", "10.0.0.1:1", "--ssh-host=-oProxyCommand=x"}),
      HasSubstr("--ssh-host is '-oProxyCommand=x'; must be a host for ssh, such as gpu1"));
  EXPECT_THAT(ErrorOf({"--shared-folder", "/shared", "--worker-listen", "10.0.0.1:1", "--ssh-host", "a",
                       "--ssh-host", "a"}),
              HasSubstr("--ssh-host has 'a' twice; name each host once"));
  const auto hosts = ParseDaemonOptions({"--shared-folder", "/shared", "--worker-listen", "10.0.0.1:1",
                                         "--ssh-host", "b", "--ssh-host", "user@a"});
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_THAT(hosts->options.ssh_hosts, testing::ElementsAre("b", "user@a"));
  EXPECT_THAT(ErrorOf({"--shared-folder", "/shared", "--worker-listen", "127.0.0.2:7448"}),
              HasSubstr("--worker-listen is '127.0.0.2:7448', which only this machine reaches; must be"));
  // All faults at once, and --check lists them itself.
  const std::vector<std::string> wrong = {"--shared-folder", "shared", "--worker-listen", "login:7448"};
  EXPECT_THAT(ErrorOf(wrong),
              AllOf(HasSubstr("--shared-folder is 'shared'"), HasSubstr("--worker-listen is 'login:7448'")));
  EXPECT_TRUE(
      ParseDaemonOptions({"--shared-folder", "shared", "--worker-listen", "login:7448", "--check"}).ok());
}

TEST(DaemonOptionsTest, AnAllowedArgumentOfSlurmIsAName) {
  EXPECT_TRUE(ParseDaemonOptions({"--slurm-allow-argument=gres-flags", "--slurm-allow-argument=nice"}).ok());
  for (const char* name : {"--nice", "-n", "nice=5", "ni ce", ""}) {
    EXPECT_THAT(ErrorOf({absl::StrCat("--slurm-allow-argument=", name)}), HasSubstr("--slurm-allow-argument"))
        << name;
  }
  EXPECT_THAT(ErrorOf({"--slurm-allow-argument=--nice"}),
              HasSubstr("--slurm-allow-argument is '--nice'; must be the name of a long option of sbatch, "
                        "without dashes in front and without a value, such as constraint"));
}

}  // namespace
}  // namespace tandem
