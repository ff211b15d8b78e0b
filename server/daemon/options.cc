#include "server/daemon/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/backend/collective_time_limit.h"
#include "engine/base/spelling.h"
#include "engine/base/version.h"
#include "server/auth/listen_policy.h"
#include "server/daemon/cluster_options.h"
#include "server/daemon/option_values.h"
#include "server/daemon/yaml_config.h"
#include "server/fetch/data_url.h"
#include "server/fetch/fetch_policy.h"
#include "server/workers/worker_protocol.h"

namespace tandem {
namespace {

constexpr char kFooter[] = R"(
Examples:
  tandemd
      Loopback only, state in the default folder, one CPU device per core.
  tandemd --state-folder /srv/tandem --data-folder /usr/share/datasets --data-folder /srv/data --cpu-devices 4
  tandemd --listen 0.0.0.0:7447 --tls-cert server.pem --tls-key server.key
      For other machines. Clients need the token (--token-file) and, for a private certificate, its authority.
  tandemd --listen 0.0.0.0:7447 --tls-cert server.pem --tls-key server.key --tls-client-ca clients.pem
      Clients also need a certificate (tandem --tls-cert and --tls-key) of an authority in clients.pem.
  tandemd --config /etc/tandem/tandemd.yaml --check
      Checks the options and this machine. Without --check: runs.
      A file such as:
        state-folder: /srv/tandem
        listen: 127.0.0.1:7447
        data-folder: [/usr/share/datasets, /srv/data]
        cpu-devices: 4

Files in the state folder: token (the daemon's token for clients; mode 0600), address (the daemon's address while it
runs), audit.log (the users' actions), tandem.db (jobs and their events), backups/ (copies of tandem.db), jobs/ (a folder
for each job: log, checkpoints, model), uploads/ (data that users uploaded), kept-weights/ (models from which unfinished
jobs start), cache/ (data fetched for jobs), public/ (public data sets fetched by name).

Data by URL: https://..., http://... and s3://bucket/key in a job's data set. For S3 the daemon reads what the AWS tools
read: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION or AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3 or
AWS_ENDPOINT_URL (paths are then endpoint/bucket/key), AWS_CA_BUNDLE; or the profile AWS_PROFILE in ~/.aws/credentials and
~/.aws/config. Without credentials requests are not signed.

SIGTERM or SIGINT stops the daemon within 5 seconds and leaves workers running: the next daemon on the same state folder
takes them over. 'tandem shutdown --cancel-jobs' stops everything.
A crash leaves its stack in crash-*.txt in the state folder, a worker's crash in its job's folder. Under systemd the daemon
reports its readiness and sends watchdog signals (deploy/systemd/tandem.service in the sources).
Exit status: 0 stopped by a signal or `tandem shutdown`; 1 could not start or failed; 2 wrong options.
With --check: 0 no faults; 1 faults.)";

// The `tandem` command uses the same places.
std::string DefaultStateFolder() {
  if (const char* state = getenv("TANDEM_STATE"); state != nullptr && *state != '\0') return state;
  if (geteuid() == 0) return "/var/lib/tandem";
  if (const char* state_home = getenv("XDG_STATE_HOME"); state_home != nullptr && state_home[0] == '/') {
    return absl::StrCat(state_home, "/tandem");
  }
  const char* home = getenv("HOME");
  return absl::StrCat(home == nullptr || *home == '\0' ? "." : home, "/.local/state/tandem");
}

// Returns the program beside this program, or in the build's folder.
std::string DefaultWorkerProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = self.parent_path();
  const std::filesystem::path beside = folder / "tandem-worker";
  const std::filesystem::path built = folder.parent_path() / "worker" / "tandem-worker";
  if (!std::filesystem::exists(beside, error) && std::filesystem::exists(built, error)) return built.string();
  return beside.string();
}

// Formats help for reading as a whole: a line with an option and its default, then its meaning.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool) const override {
    std::string text = absl::StrCat("  ", option->get_name(false, true));
    if (!option->get_type_name().empty()) absl::StrAppend(&text, " ", Placeholder(*option));
    if (const std::string initial = Default(*option); !initial.empty()) {
      absl::StrAppend(&text, "  (default ", initial, ")");
    }
    text += '\n';
    std::string line;
    for (absl::string_view word : absl::StrSplit(option->get_description(), ' ')) {
      if (line.size() + word.size() > 100) {
        absl::StrAppend(&text, "      ", line, "\n");
        line.clear();
      }
      absl::StrAppend(&line, line.empty() ? "" : " ", word);
    }
    absl::StrAppend(&text, "      ", line, "\n");
    return text;
  }
  std::string make_footer(const CLI::App* app) const override { return app->get_footer() + "\n"; }

 private:
  // Removes the checks that CLI11 appends to a type's name.
  static std::string Placeholder(const CLI::Option& option) {
    const std::string name = option.get_type_name();
    return name.substr(0, name.find_first_of(":="));
  }
  static std::string Default(const CLI::Option& option) {
    std::string initial = option.get_default_str();
    if (initial.size() >= 2 && initial.front() == '[') initial = initial.substr(1, initial.size() - 2);
    return initial;
  }
};

void AddFetchOptions(DaemonOptions* options, CLI::App* app) {
  app->add_option(
         "--fetch-from", options->fetch_from,
         "Where data that jobs name by URL may be fetched from, instead of the default; repeatable. "
         "'public': any host of the public Internet. HOST, HOST:PORT or *.DOMAIN: this host, even with a "
         "private address. s3://BUCKET, s3://BUCKET/PREFIX or s3://*: these objects, with the daemon's "
         "credentials, so all users who may submit jobs can use data that those credentials can read. "
         "'none': nowhere; it must be the only value. Behind a proxy (https_proxy for https, http_proxy for "
         "http, or all_proxy) the proxy resolves names, and 'public' checks only numeric addresses. no_proxy "
         "applies only to hosts that this option names")
      ->type_name("PATTERN")
      ->capture_default_str()
      ->allow_extra_args(false)
      ->group("Data from elsewhere");
  AddSize("--cache-size",
          "The most space that fetched data may use in the state folder, such as 200GiB. When room "
          "is needed, the data unused for longest are removed, but never data of a job that has not "
          "ended or of a registered data set",
          &options->cache_bytes, app)
      ->default_str("50GiB")
      ->group("Data from elsewhere");
  app->add_option("--datasets-mirror", options->datasets_mirror,
                  "http:// or https:// address below which public data sets are looked for first, as "
                  "<address>/mnist/train-images-idx3-ubyte.gz; checksums are always verified")
      ->type_name("URL")
      ->envname("TANDEM_DATASETS_MIRROR")
      ->group("Data from elsewhere");
}

void AddDataOptions(DaemonOptions* options, CLI::App* app) {
  app->add_option("--state-folder", options->state_folder,
                  "Folder for jobs, their events and files; created if missing. Each daemon needs its own. "
                  "TANDEM_STATE sets another default, for tandemd and tandem")
      ->type_name("DIR")
      ->capture_default_str()
      ->group("State and data");
  app->add_option("--data-folder", options->data_folders,
                  "Folder that data may be read from, instead of the default; repeatable. A subfolder with "
                  "MNIST's four IDX files is a data set of the subfolder's name")
      ->type_name("DIR")
      ->capture_default_str()
      ->allow_extra_args(false)
      ->group("State and data");
  AddSize("--upload-limit", "The largest upload that is accepted, such as 20GiB; 0: no limit",
          &options->upload_limit, app)
      ->default_str("256GiB")
      ->group("State and data");
  AddSize("--upload-space",
          "Space for all uploaded data in the state folder, such as 1TiB; 0: the whole disk except 1 "
          "GiB, which stays free",
          &options->upload_space, app)
      ->group("State and data");
  AddDuration("--backup-every", absl::ZeroDuration(),
              "How often the daemon copies its database to backups/ in the state folder; 0s: never",
              &options->backup_every, app, kLongestSchedulingDuration)
      ->group("State and data");
  AddNumber("--backups-kept", 1, 10000,
            "Number of these copies to keep; copies by `tandem backup` are always kept",
            &options->backups_kept, app)
      ->group("State and data");
  AddDuration(
      "--keep-ended-jobs", absl::ZeroDuration(),
      "How long an ended job is kept, such as 30d. Then it is deleted with its log, checkpoints and model, "
      "unless an unfinished job starts from them. A sweep is deleted as a whole, counted from the end of its "
      "last job. Nothing is deleted on the first day after the daemon's start or a jump of the clock. "
      "0s: for ever",
      &options->keep_ended_jobs, app, kLongestSchedulingDuration)
      ->group("State and data");
}

void AddNetworkOptions(DaemonOptions* options, CLI::App* app) {
  app->add_option("--listen", options->listen, "HOST:PORT to listen on; port 0: any free port")
      ->type_name("ADDRESS")
      ->capture_default_str()
      ->group("Network");
  CLI::Option* certificate = app->add_option(
      "--tls-cert", options->tls_cert, "Certificate chain in PEM form: serve only over TLS. Needs --tls-key");
  certificate->type_name("FILE")->group("Network");
  CLI::Option* key = app->add_option("--tls-key", options->tls_key,
                                     "Private key of the certificate in PEM form, without a passphrase");
  key->type_name("FILE")->group("Network");
  app->add_option("--tls-client-ca", options->tls_client_ca,
                  "Authorities in PEM form: clients must also show a certificate of one of them. Changes of "
                  "the three files apply to new connections without a restart")
      ->type_name("FILE")
      ->group("Network");
  AddNumber("--max-connections", 0, 1000000,
            "The most open connections; further connections are closed at once. A client needs one. 0: "
            "the limit on open files",
            &options->max_connections, app)
      ->group("Network");
  app->add_flag("--insecure-listen-beyond-loopback", options->insecure_listen_beyond_loopback,
                "Allow --listen on an address that other machines reach, without TLS: others on the network "
                "can then read the token and all data")
      ->group("Network");
  app->add_option("--metrics-listen", options->metrics_listen,
                  "HOST:PORT to serve /metrics (for Prometheus), /healthz and /readyz on, over plain HTTP "
                  "and without a token, such as 127.0.0.1:7448; port 0: any free port. Default: nowhere")
      ->type_name("ADDRESS")
      ->group("Network");
  app->add_flag("--metrics-beyond-loopback", options->metrics_beyond_loopback,
                "Allow --metrics-listen on an address that other machines reach: everyone there can read the "
                "names of jobs and devices and how busy they are")
      ->group("Network");
}

void AddDeviceOptions(DaemonOptions* options, CLI::App* app) {
  AddNumber("--cpu-devices", 0, 4096, "Number of CPU devices, each for one replica; 0: one per core",
            &options->cpu_devices, app)
      ->group("Devices");
  AddNumber("--threads-per-cpu-device", 0, 4096,
            "Threads per CPU device; 0: the cores divided evenly, at least 1 each",
            &options->threads_per_cpu_device, app)
      ->group("Devices");
  AddNumber("--reference-devices", 0, 4096,
            "Number of devices that compute in double precision with plain loops: slow, to check results",
            &options->reference_devices, app)
      ->group("Devices");
  AddSize("--memory",
          "Memory for all CPU and reference devices together, such as 16GiB, divided evenly; 0: nine "
          "tenths of the machine's memory",
          &options->memory_bytes, app)
      ->group("Devices");
  AddSize("--gpu-memory-limit",
          "The most GPU memory for one replica, such as 20GiB, and the default of jobs without "
          "gpu.memory_limit_bytes; 0: all free memory",
          &options->gpu_memory_limit, app)
      ->group("Devices");
  AddSize("--gpu-workspace-limit",
          "The most scratch memory of a convolution or product on a GPU, for jobs without "
          "gpu.workspace_limit_bytes; 0: 256MiB",
          &options->gpu_workspace_limit, app)
      ->group("Devices");
  app->add_option("--worker-program", options->worker_program, "The tandem-worker program")
      ->type_name("FILE")
      ->capture_default_str()
      ->group("Devices");
  app->add_option(
         "--worker-sandbox", options->worker_sandbox,
         "Confine workers to the files and system calls that they need: on (the daemon does not start if the "
         "kernel lacks Landlock or seccomp), best-effort (as far as the kernel can), or off")
      ->type_name("MODE")
      ->check(CLI::IsMember({"on", "best-effort", "off"}))
      ->capture_default_str()
      ->group("Devices");
  AddDuration("--cancel-grace", absl::ZeroDuration(),
              "Time for a worker to write its checkpoint and model after its job was cancelled or reached "
              "its time limit; then it is killed",
              &options->cancel_grace, app)
      ->group("Devices");
  AddDuration("--worker-silence-limit", kLeastSilence * kReconnectInterval,
              "How long a worker may be silent, because its process or host hangs. In a group, the other "
              "workers then give it up and the job restarts. A worker that trains alone is killed; a worker "
              "of an earlier daemon gets a little more time to connect",
              &options->worker_silence_limit, app, kLongestDuration,
              absl::StrCat("a healthy worker looks for its daemon every ",
                           absl::FormatDuration(kReconnectInterval), ", and must not be killed in between"))
      ->group("Devices");
  AddDuration("--collective-time-limit", kLeastCollectiveTime,
              "How long the replicas of a job wait for a replica that is alive but late; then training ends "
              "and names it. They wait for each other in every step, and while each replica compiles and "
              "times the network, so the limit must be longer than that",
              &options->collective_time_limit, app, kMostCollectiveTime)
      ->group("Devices");
}

void AddModelTaskOptions(DaemonOptions* options, CLI::App* app) {
  AddNumber("--model-workers", 1, 64,
            "Predictions and evaluations that run at the same time, each with the threads of one CPU "
            "device and a lower priority than jobs; others wait",
            &options->model_workers, app)
      ->group("Predictions and evaluations");
  AddDuration("--model-time-limit", absl::Seconds(1), "The longest time of one prediction or evaluation",
              &options->model_time_limit, app)
      ->group("Predictions and evaluations");
  AddDuration(
      "--model-idle-time", absl::ZeroDuration(),
      "The time for which a process of a prediction keeps its model in memory, for the same user's next "
      "prediction with this model. At most as many processes wait as may run; 0s: none",
      &options->model_idle_time, app)
      ->group("Predictions and evaluations");
}

void AddUserOptions(DaemonOptions* options, CLI::App* app) {
  AddNumber("--user-max-devices", 0, 1000000,
            "The most devices that a user's jobs may hold, if the user's token has no limit of its "
            "own; 0: no limit. Does not apply to admin, the user of the token file",
            &options->user_max_devices, app)
      ->group("Users and scheduling");
  AddNumber("--user-max-queued-jobs", 0, 1000000,
            "The most queued jobs of a user, if the user's token has no limit of its own; 0: no limit. "
            "Does not apply to admin",
            &options->user_max_queued_jobs, app)
      ->group("Users and scheduling");
  AddNumber("--user-max-streams", 0, 1000000,
            "The most open streams of a user (watches, logs, uploads, downloads), if the user's token "
            "has no limit of its own; 0: no limit. Does not apply to admin",
            &options->user_max_streams, app)
      ->group("Users and scheduling");
  app->add_option("--user-max-call-rate", options->user_max_call_rate,
                  "The most calls of a user per second on average, with bursts of five times as many; "
                  "further calls are refused with a time to try again. 0: no limit. Does not apply to admin")
      ->type_name("N")
      ->check(CLI::Range(0.0, 1e6))
      ->check([](const std::string& text) {
        double rate = 0;
        // CLI11 accepts "nan" in any range.
        return absl::SimpleAtod(text, &rate) && std::isnan(rate) ? "is not a number" : std::string();
      })
      ->capture_default_str()
      ->group("Users and scheduling");
  AddSize("--user-max-disk",
          "The most space for a user's jobs and uploads together, such as 500GiB, if the user's "
          "token has no limit of its own; 0: no limit. A running job is not stopped by it, but new "
          "jobs are refused. Does not apply to admin",
          &options->user_max_disk, app)
      ->group("Users and scheduling");
  AddNumber("--max-queued-jobs", 0, 10000000, "The most queued jobs of all users; 0: no limit",
            &options->max_queued_jobs, app)
      ->group("Users and scheduling");
  AddDuration("--fair-share-half-life", absl::Seconds(1),
              "After this time, a user's past device-seconds count only half in the order of the queue",
              &options->fair_share_half_life, app, kLongestSchedulingDuration)
      ->group("Users and scheduling");
  AddDuration("--ageing-interval", absl::Seconds(1),
              "After each such interval, the first job of a user at one priority moves up one level, so that "
              "no job waits for ever",
              &options->ageing_interval, app, kLongestSchedulingDuration)
      ->group("Users and scheduling");
}

void AddLogOptions(DaemonOptions* options, CLI::App* app) {
  app->add_option("--log-level", options->log_level,
                  "The least severe messages to log, to standard error: debug, info, warn or error")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str()
      ->group("Log");
  app->add_option("--log-format", options->log_format,
                  "Format of log lines: text, or json (one object per line)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str()
      ->group("Log");
}

// The help lists groups of options in this order.
void AddOptions(DaemonOptions* options, CLI::App* app) {
  AddDataOptions(options, app);
  AddFetchOptions(options, app);
  AddNetworkOptions(options, app);
  AddDeviceOptions(options, app);
  AddClusterOptions(options, app);
  AddModelTaskOptions(options, app);
  AddUserOptions(options, app);
  AddLogOptions(options, app);
}

// Returns the long names of the options that a file may have.
std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option :
       app.get_options([](const CLI::Option* o) { return o->get_configurable(); })) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

// Returns the long names of all options.
std::vector<std::string> FlagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

// Returns an error for a --config file that cannot be opened.
std::string ExplainUnreadable(const std::string& file) {
  if (absl::StartsWith(file, "--")) {
    return absl::StrCat("--config: needs a value before the option '", file, "'");
  }
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(file, error);
  const char* const reason = access(file.c_str(), R_OK) != 0 ? strerror(errno) : strerror(EISDIR);
  return absl::StrCat(
      "cannot read the --config file ", file, ": ", reason, "; ",
      is_folder ? "name a file in it" : absl::StrCat("name a file that user ", geteuid(), " may read"));
}

// Returns an error for unknown arguments that suggests the flag that was probably meant. `names` are the
// flags, without leading dashes.
std::string ExplainUnknown(const std::vector<std::string>& arguments, const std::vector<std::string>& names) {
  for (const std::string& argument : arguments) {
    if (!absl::StartsWith(argument, "--")) continue;
    const std::string flag = argument.substr(0, argument.find('='));
    const std::string name = flag.substr(2);
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string close = NearestName(name, names);
    return absl::StrCat("there is no option ", flag,
                        close.empty() ? "" : absl::StrCat("; did you mean --", close, "?"));
  }
  return "unexpected arguments; give everything as --option value";
}

// If a value is missing, CLI11 takes the next option as the value.
absl::Status CheckValues(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    // FaultsOfClusterOptions says which names are allowed.
    if (option->get_name() == "--slurm-allow-argument") continue;
    for (const std::string& value : option->results()) {
      if (!absl::StartsWith(value, "--")) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(option->get_name(), ": needs a value before the option '", value, "'"));
    }
  }
  return absl::OkStatus();
}

// Without a value, these options would be ignored, or would name the working directory.
absl::Status CheckNotEmpty(const CLI::App& app) {
  for (const char* name :
       {"--config", "--restore-backup", "--state-folder", "--data-folder", "--worker-program"}) {
    const std::vector<std::string>& values = app.get_option(name)->results();
    if (std::find(values.begin(), values.end(), "") == values.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(name, " is empty; give a value, or leave the option out"));
  }
  return absl::OkStatus();
}

// A shell expands '~' only at the beginning of a word, and not in a file. The daemon would create a folder
// with the name '~'.
absl::Status CheckPaths(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type != "DIR" && type != "FILE" && type != "BACKUP") continue;
    for (const std::string& value : option->results()) {
      if (!absl::StartsWith(value, "~")) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          option->get_name(), " is '", value,
          "', but tandemd does not expand ~; write the whole path, or ./~ for a folder of this name"));
    }
  }
  return absl::OkStatus();
}

// Two servers cannot share a port. Invalid addresses are reported where they are used.
absl::Status CheckPorts(const DaemonOptions& options) {
  // Returns whether a server on `host` takes the port on `other`, too.
  const auto takes = [](const std::string& host, const std::string& other) {
    return host == other || host == "::" || (host == "0.0.0.0" && !absl::StrContains(other, ':'));
  };
  const std::pair<const char*, const std::string*> all[] = {{"--listen", &options.listen},
                                                            {"--worker-listen", &options.worker_listen},
                                                            {"--metrics-listen", &options.metrics_listen}};
  for (size_t i = 0; i < std::size(all); ++i) {
    for (size_t j = i + 1; j < std::size(all); ++j) {
      const absl::StatusOr<ListenAddress> one = ParseListenAddress(*all[i].second);
      const absl::StatusOr<ListenAddress> other = ParseListenAddress(*all[j].second);
      if (!one.ok() || !other.ok() || one->port == 0 || one->port != other->port) continue;
      if (!takes(one->host, other->host) && !takes(other->host, one->host)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("cannot use one port for ", all[i].first, " ", *all[i].second, " and ", all[j].first,
                       " ", *all[j].second, "; give ", all[j].first, " another port"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFetchOptions(const DaemonOptions& options) {
  if (const auto policy = FetchPolicy::Parse(options.fetch_from); !policy.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--fetch-from: ", policy.status().message()));
  }
  if (options.cache_bytes <= 0) return absl::InvalidArgumentError("--cache-size must be above 0");
  if (options.datasets_mirror.empty()) return absl::OkStatus();
  const absl::StatusOr<DataUrl> mirror = ParseDataUrl(options.datasets_mirror);
  if (!mirror.ok() || mirror->is_s3()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--datasets-mirror ", mirror.ok() ? "must be http://... or https://..." : mirror.status().message()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ParsedOptions> ParseDaemonOptions(const std::vector<std::string>& arguments) {
  ParsedOptions parsed;
  DaemonOptions& options = parsed.options;
  options.state_folder = DefaultStateFolder();
  options.worker_program = DefaultWorkerProgram();
  options.data_folders = {"/usr/share/datasets"};

  CLI::App app(
      "tandemd, the Tandem daemon: takes training jobs over gRPC and runs them on this machine's devices.\n",
      "tandemd");
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->label("OPTIONS", "OPTIONS");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("tandemd ") + kVersion, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  AddOptions(&options, &app);
  // A file cannot have the options that are added later.
  const std::vector<std::string> names = OptionNames(app);
  app.set_config("--config", "",
                 "YAML file with any of these options by name; options of the command line win")
      ->type_name("FILE");
  app.add_flag("--check", parsed.check,
               "Check whether a daemon could run with these options, and print all faults; starts no daemon, "
               "and changes nothing")
      ->configurable(false);
  app.add_option("--restore-backup", options.restore_backup,
                 "Replace the database by this backup (a file, or an id of `tandem backup list`), keep the "
                 "old database beside it, and exit. No daemon may use the state folder")
      ->type_name("BACKUP")
      ->configurable(false);
  app.add_flag("--begin-anew", parsed.begin_anew,
               "Move the database, backups, jobs and uploads of the state folder into a new folder in it, "
               "and exit; the next daemon then starts empty. No daemon may use the state folder")
      ->configurable(false)
      ->excludes("--restore-backup");
  app.config_formatter(std::make_shared<YamlConfig>(names));
  app.allow_config_extras(CLI::config_extras_mode::error);

  // CLI11 takes arguments in reverse order.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  // as<>() throws if the option is repeated.
  const auto config = [&app]() -> std::string {
    const std::vector<std::string> given = app.get_config_ptr()->results();
    return given.empty() ? "" : given.back();
  };
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    parsed.text = app.help();
    return parsed;
  } catch (const CLI::CallForVersion&) {
    parsed.text = app.version() + "\n";
    return parsed;
  } catch (const CLI::FileError&) {
    return absl::InvalidArgumentError(ExplainUnreadable(config()));
  } catch (const CLI::ConfigError& error) {
    return absl::InvalidArgumentError(absl::StrCat("the --config file ", config(), ": ", error.what()));
  } catch (const CLI::ExtrasError&) {
    return absl::InvalidArgumentError(ExplainUnknown(arguments, FlagNames(app)));
  } catch (const CLI::Error& error) {
    // Only flags have values that CLI11 converts without a check.
    const bool is_flag = dynamic_cast<const CLI::ConversionError*>(&error) != nullptr;
    // CLI11 does not say if the fault is on the command line or in the file.
    return absl::InvalidArgumentError(absl::StrCat(
        error.what(), is_flag ? "; must be true or false" : "",
        config().empty() ? ""
                         : absl::StrCat(" (on the command line, or in the --config file ", config(), ")")));
  }
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key must be given together");
  }
  if (!options.tls_client_ca.empty() && options.tls_cert.empty()) {
    return absl::InvalidArgumentError("--tls-client-ca needs --tls-cert and --tls-key");
  }
  for (const absl::Status& status : {CheckValues(app), CheckNotEmpty(app), CheckPaths(app),
                                     CheckPorts(options), CheckFetchOptions(options),
                                     // CheckDaemon reports these faults beside all others.
                                     parsed.check ? absl::OkStatus() : CheckClusterOptions(options)}) {
    if (!status.ok()) return status;
  }
  // The daemon passes these folders to other programs and clients.
  for (std::string& folder : options.data_folders) {
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(folder, error);
    if (!error) folder = absolute.string();
  }
  return parsed;
}

}  // namespace tandem
