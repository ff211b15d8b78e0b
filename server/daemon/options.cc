#include "server/daemon/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/backend/collective_time_limit.h"
#include "engine/base/version.h"
#include "server/admission/closest_name.h"
#include "server/auth/listen_policy.h"
#include "server/daemon/size_option.h"
#include "server/daemon/yaml_config.h"
#include "server/fetch/data_url.h"
#include "server/fetch/fetch_policy.h"
#include "server/workers/worker_protocol.h"

namespace tandem {
namespace {

constexpr absl::Duration kLongestDuration = absl::Hours(24);
constexpr absl::Duration kLongestSchedulingDuration = absl::Hours(24 * 365);

constexpr char kFooter[] = R"(
Examples:
  tandemd
      Loopback only, state in the default folder, one CPU device a core.
  tandemd --state-folder /srv/tandem --data-folder /usr/share/datasets --data-folder /srv/data --cpu-devices 4
  tandemd --listen 0.0.0.0:7447 --tls-cert server.pem --tls-key server.key
      For other machines. Clients need the token (--token-file) and, for a certificate of one's own, its authority.
  tandemd --listen 0.0.0.0:7447 --tls-cert server.pem --tls-key server.key --tls-client-ca clients.pem
      Besides, clients need a certificate (tandem --tls-cert and --tls-key) by an authority in clients.pem.
  tandemd --config /etc/tandem/tandemd.yaml --check
      Is all as it must be? Without --check: run.
      A file such as:
        state-folder: /srv/tandem
        listen: 127.0.0.1:7447
        data-folder: [/usr/share/datasets, /srv/data]
        cpu-devices: 4

Files in the state folder: token (what clients must send; mode 0600), address (where the daemon listens, while it
runs), audit.log (who did what), tandem.db (jobs and their events), backups/ (copies of it), jobs/ (a folder a job: log,
model), cache/ (data that was fetched for jobs), public/ (public data sets that were fetched by name).

Data by URL: https://..., http://... and s3://bucket/key in a job's data set. For S3 the daemon reads what the AWS tools
read: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION or AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3 or
AWS_ENDPOINT_URL (paths are then endpoint/bucket/key), AWS_CA_BUNDLE; or the profile AWS_PROFILE in ~/.aws/credentials and
~/.aws/config. Without credentials requests are not signed.

SIGTERM or SIGINT stops the daemon within 5 seconds and leaves workers running: the next daemon on the same state folder
takes them over. 'tandem shutdown --cancel-jobs' stops everything.
A crash leaves its stack in crash-*.txt in the state folder, that of a worker in its job's folder. Under systemd the daemon
says when it is ready and that it still works (deploy/systemd/tandem.service in the sources).
Exit status: 0 stopped when asked to; 1 could not start or failed; 2 wrong options.
With --check: 0 it could run; 1 something is to be mended.)";

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

// Parses absl's format, and days such as "30d".
bool ReadDuration(absl::string_view text, absl::Duration* value) {
  double days = 0;
  if (absl::ConsumeSuffix(&text, "d")) {
    // Excludes "nan", "infinity" and values far beyond any limit.
    if (!absl::SimpleAtod(text, &days) || !(std::abs(days) < 1e6)) return false;
    *value = absl::Hours(24 * days);
    return true;
  }
  return absl::ParseDuration(text, value);
}

std::string ShowDuration(absl::Duration value) {
  const absl::Duration day = absl::Hours(24);
  if (value <= day || value % day != absl::ZeroDuration()) return absl::FormatDuration(value);
  return absl::StrCat(value / day, "d");
}

// Adds a duration option between `least` and `most`. The error for other values ends with `why`.
CLI::Option* AddDuration(const std::string& flag, absl::Duration least, const std::string& description,
                         absl::Duration* value, CLI::App* app, absl::Duration most = kLongestDuration,
                         const std::string& why = "") {
  return app
      ->add_option_function<std::string>(
          flag,
          [flag, least, most, why, value](const std::string& text) {
            if (ReadDuration(text, value) && *value >= least && *value <= most) return;
            throw CLI::ValidationError(
                flag,
                absl::StrCat(
                    "must be a duration from ", ShowDuration(least), " to ", ShowDuration(most),
                    most > kLongestDuration ? " such as 12h or 30d, not '" : " such as 30s or 2m, not '",
                    text, "'", why.empty() ? "" : ": ", why));
          },
          description)
      ->type_name("DURATION")
      ->default_str(ShowDuration(*value));
}

void AddFetchOptions(DaemonOptions* options, CLI::App* app) {
  app->add_option(
         "--fetch-from", options->fetch_from,
         "Where data that jobs name by a URL may be fetched from, in place of the default; may be "
         "given several times. "
         "'public': any host of the public Internet. HOST, HOST:PORT or *.DOMAIN: this one, also "
         "where it has a private "
         "address, to which a job can otherwise not make the daemon connect. s3://BUCKET, "
         "s3://BUCKET/PREFIX or s3://*: "
         "these, with the daemon's own credentials, so that all who may submit jobs can use what "
         "those may read. "
         "'none', alone: nowhere. Behind a proxy (https_proxy for https alone, http_proxy for "
         "http alone, or all_proxy) it is the proxy that looks names up, and 'public' holds only what "
         "is an address in numbers; no_proxy counts for hosts that are named here alone")
      ->type_name("PATTERN")
      ->capture_default_str()
      ->allow_extra_args(false)
      ->group("Data from elsewhere");
  app->add_option("--cache-size", options->cache_bytes,
                  "The most that fetched data may take in the state folder, such as 200GiB. Where room is "
                  "needed, what "
                  "was not used for longest goes; never what a job that has not ended, or a registered data "
                  "set, names")
      ->type_name("SIZE")
      ->transform(SizeValue())
      ->default_str("50GiB")
      ->group("Data from elsewhere");
  app->add_option("--datasets-mirror", options->datasets_mirror,
                  "http:// or https:// address below which public data sets are looked for first, as "
                  "<address>/mnist/train-images-idx3-ubyte.gz; checksums are verified whoever sends them")
      ->type_name("URL")
      ->envname("TANDEM_DATASETS_MIRROR")
      ->group("Data from elsewhere");
}

void AddOptions(DaemonOptions* options, CLI::App* app) {
  app->add_option("--state-folder", options->state_folder,
                  "Folder of jobs, their events and files; made where it is missing. One daemon a folder. "
                  "TANDEM_STATE "
                  "gives another default, here and to the command line")
      ->type_name("DIR")
      ->capture_default_str()
      ->group("State and data");
  app->add_option("--data-folder", options->data_folders,
                  "Folder that data may be read from, in place of the default; may be given several times. A "
                  "subfolder "
                  "with the four IDX files of MNIST's names is a data set of the subfolder's name")
      ->type_name("DIR")
      ->capture_default_str()
      ->allow_extra_args(false)
      ->group("State and data");
  app->add_option("--upload-limit", options->upload_limit,
                  "The largest upload of data that is taken in, such as 20GiB; 0: of any size")
      ->type_name("SIZE")
      ->transform(SizeValue())
      ->default_str("256GiB")
      ->group("State and data");
  app->add_option(
         "--upload-space", options->upload_space,
         "Space of the state folder that uploaded data may take in all, such as 1TiB; 0: as the disk "
         "has, but for 1 GiB")
      ->type_name("SIZE")
      ->transform(SizeValue())
      ->capture_default_str()
      ->group("State and data");

  AddDuration(
      "--backup-every", absl::ZeroDuration(),
      "How often the database is copied to backups/ in the state folder, without being asked to; 0s: never",
      &options->backup_every, app, kLongestSchedulingDuration)
      ->group("State and data");
  app->add_option("--backups-kept", options->backups_kept,
                  "Copies kept of those that were made so; what `tandem backup` makes stays")
      ->type_name("N")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str()
      ->group("State and data");
  AddDuration("--keep-ended-jobs", absl::ZeroDuration(),
              "How long after its end a job is kept, such as 30d: then it is deleted with its log, its "
              "checkpoints and its model, unless a job that has not ended begins with them. A sweep goes as "
              "a whole, by its last job's end. What the clock was set ahead, and what passed over a reboot, "
              "does not count. 0s: for ever",
              &options->keep_ended_jobs, app, kLongestSchedulingDuration)
      ->group("State and data");

  AddFetchOptions(options, app);

  app->add_option("--listen", options->listen, "HOST:PORT to serve on; port 0 takes any that is free")
      ->type_name("ADDRESS")
      ->capture_default_str()
      ->group("Network");
  CLI::Option* certificate = app->add_option("--tls-cert", options->tls_cert,
                                             "Certificate chain, PEM: serve over TLS alone. Needs --tls-key");
  certificate->type_name("FILE")->group("Network");
  CLI::Option* key =
      app->add_option("--tls-key", options->tls_key, "Its private key, PEM, without a passphrase");
  key->type_name("FILE")->group("Network");
  app->add_option(
         "--tls-client-ca", options->tls_client_ca,
         "Authorities, PEM: clients must show a certificate by one of them, besides their token. The three "
         "files are read again when they change, for connections made from then on")
      ->type_name("FILE")
      ->group("Network");
  app->add_option(
         "--max-connections", options->max_connections,
         "Connections that are open at a time; more are closed as they come. A client needs one; 0: as "
         "many as there may be open files")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str()
      ->group("Network");
  app->add_flag("--insecure-listen-beyond-loopback", options->insecure_listen_beyond_loopback,
                "Allow --listen on an address that other machines reach, without TLS: the token and all data "
                "can then "
                "be read on the way")
      ->group("Network");

  app->add_option(
         "--metrics-listen", options->metrics_listen,
         "HOST:PORT to serve /metrics (for Prometheus), /healthz and /readyz on, over plain HTTP and "
         "without a token, such as 127.0.0.1:7448; port 0 takes any that is free. Default: nowhere")
      ->type_name("ADDRESS")
      ->group("Network");
  app->add_flag("--metrics-beyond-loopback", options->metrics_beyond_loopback,
                "Allow --metrics-listen on an address that other machines reach: all who do can read the "
                "names of jobs and devices and how busy they are")
      ->group("Network");

  app->add_option("--cpu-devices", options->cpu_devices,
                  "CPU devices to offer, each for one replica; 0: one a core")
      ->type_name("N")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str()
      ->group("Devices");
  app->add_option("--threads-per-cpu-device", options->threads_per_cpu_device,
                  "Threads of each; 0: the cores split evenly, at least 1 each")
      ->type_name("N")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str()
      ->group("Devices");
  app->add_option("--reference-devices", options->reference_devices,
                  "Devices that compute in double precision by plain loops: slow, to check results against")
      ->type_name("N")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str()
      ->group("Devices");
  app->add_option(
         "--memory", options->memory_bytes,
         "Memory that all devices together may plan for, such as 16GiB, split evenly; 0: nine tenths of the "
         "machine's")
      ->type_name("SIZE")
      ->transform(SizeValue())
      ->capture_default_str()
      ->group("Devices");
  app->add_option(
         "--gpu-memory-limit", options->gpu_memory_limit,
         "The most of its GPU's memory that one replica may take, such as 20GiB, and what jobs get that do "
         "not say (gpu.memory_limit_bytes); 0: all that is free")
      ->type_name("SIZE")
      ->transform(SizeValue())
      ->capture_default_str()
      ->group("Devices");
  app->add_option("--gpu-workspace-limit", options->gpu_workspace_limit,
                  "Scratch memory of a convolution or product on a GPU, at most, in jobs that do not say "
                  "(gpu.workspace_limit_bytes); 0: 256MiB")
      ->type_name("SIZE")
      ->transform(SizeValue())
      ->capture_default_str()
      ->group("Devices");
  app->add_option("--worker-program", options->worker_program, "The tandem-worker program")
      ->type_name("FILE")
      ->capture_default_str()
      ->group("Devices");
  app->add_option(
         "--worker-sandbox", options->worker_sandbox,
         "How workers are confined to the files and the system calls that they need: on, where the kernel "
         "must be able to (Landlock and seccomp; the daemon does not start otherwise); best-effort, as far "
         "as "
         "it can; off")
      ->type_name("MODE")
      ->check(CLI::IsMember({"on", "best-effort", "off"}))
      ->capture_default_str()
      ->group("Devices");
  AddDuration(
      "--cancel-grace", absl::ZeroDuration(),
      "How long a worker may take to write its checkpoint and its model after its job was cancelled or "
      "ran out of time, before it is ended",
      &options->cancel_grace, app)
      ->group("Devices");
  AddDuration(
      "--worker-silence-limit", kLeastSilence * kReconnectInterval,
      "How long one of several workers of a job may be silent, because its process or host hangs, before "
      "the others give it up and the job starts again. One that trains alone is killed when it has not "
      "answered the daemon for this long and has not come back for as long; one that an earlier daemon "
      "started has a little longer to find this one",
      &options->worker_silence_limit, app, kLongestDuration,
      absl::StrCat("a worker that is well looks for its daemon every ",
                   absl::FormatDuration(kReconnectInterval), ", and must not be killed in between"))
      ->group("Devices");
  AddDuration(
      "--collective-time-limit", kLeastCollectiveTime,
      "How long the replicas of a job wait for one that lives and does not come where they meet, before its "
      "training ends and names it. They wait for each other in every step, and while each in its turn "
      "compiles and times the network: leave it longer than that takes",
      &options->collective_time_limit, app, kMostCollectiveTime)
      ->group("Devices");

  app->add_option(
         "--model-workers", options->model_workers,
         "Predictions and evaluations that run at once, each with the threads of one CPU device and at a "
         "lower priority than jobs; others wait")
      ->type_name("N")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group("Predictions and evaluations");
  AddDuration("--model-time-limit", absl::Seconds(1), "The longest that each of them may take",
              &options->model_time_limit, app)
      ->group("Predictions and evaluations");

  app->add_option(
         "--user-max-devices", options->user_max_devices,
         "Devices that a user's jobs may hold at a time, unless the user's token says otherwise; 0: any "
         "number. It does not bind the user of the token file, admin")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str()
      ->group("Users and scheduling");
  app->add_option("--user-max-queued-jobs", options->user_max_queued_jobs,
                  "Jobs of a user that may be queued at a time, likewise")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str()
      ->group("Users and scheduling");
  app->add_option(
         "--user-max-streams", options->user_max_streams,
         "Streams of a user that may be open at a time (watches, logs, uploads, downloads), likewise")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str()
      ->group("Users and scheduling");
  app->add_option("--user-max-call-rate", options->user_max_call_rate,
                  "Calls of a user that are answered a second on average, and five times as many at once, "
                  "likewise; others are told when to come again")
      ->type_name("N")
      ->check(CLI::Range(0.0, 1e6))
      ->check([](const std::string& text) {
        double rate = 0;
        // CLI11 accepts "nan" in any range.
        return absl::SimpleAtod(text, &rate) && std::isnan(rate) ? "is no number" : std::string();
      })
      ->capture_default_str()
      ->group("Users and scheduling");
  app->add_option("--user-max-disk", options->user_max_disk,
                  "Space that the folders of a user's jobs, and a user's uploads, may take together, such as "
                  "500GiB, likewise. A job that trains is not stopped by it, but no other is taken in")
      ->type_name("SIZE")
      ->transform(SizeValue())
      ->capture_default_str()
      ->group("Users and scheduling");
  app->add_option("--max-queued-jobs", options->max_queued_jobs,
                  "Jobs of all users together that may be queued at a time; 0: any number")
      ->type_name("N")
      ->check(CLI::Range(int64_t{0}, int64_t{10000000}))
      ->capture_default_str()
      ->group("Users and scheduling");
  AddDuration("--fair-share-half-life", absl::Seconds(1),
              "After this, the device-seconds that a user has used count half against the user's next jobs",
              &options->fair_share_half_life, app, kLongestSchedulingDuration)
      ->group("Users and scheduling");
  AddDuration(
      "--ageing-interval", absl::Seconds(1),
      "The first of a user's jobs of one priority goes up a level of priority for each time that passes like "
      "this, so that none waits for ever",
      &options->ageing_interval, app, kLongestSchedulingDuration)
      ->group("Users and scheduling");

  app->add_option("--log-level", options->log_level,
                  "What to log, to standard error: debug, info, warn or error")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str()
      ->group("Log");
  app->add_option("--log-format", options->log_format, "text, or json: one object a line")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str()
      ->group("Log");
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option :
       app.get_options([](const CLI::Option* o) { return o->get_configurable(); })) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

// Returns an error for unknown arguments that suggests the flag that was probably meant.
std::string ExplainUnknown(const std::vector<std::string>& arguments, const std::vector<std::string>& names) {
  for (const std::string& argument : arguments) {
    if (!absl::StartsWith(argument, "--")) continue;
    const std::string flag = argument.substr(0, argument.find('='));
    const std::string name = flag.substr(2);
    // Also know the flags that a configuration file cannot have.
    if (name == "config" || name == "check" || name == "restore-backup" || name == "begin-anew" ||
        name == "help" || name == "version" || std::find(names.begin(), names.end(), name) != names.end())
      continue;
    const std::string close = ClosestName(name, names);
    return absl::StrCat("there is no option ", flag,
                        close.empty() ? "" : absl::StrCat("; did you mean --", close, "?"));
  }
  return "there are arguments that no option takes; everything is given as --option value";
}

// If a value is missing, CLI11 takes the next option as the value.
absl::Status CheckValues(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& value : option->results()) {
      if (!absl::StartsWith(value, "--")) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(option->get_name(), ": '", value, "' is an option; a value is missing before it"));
    }
  }
  return absl::OkStatus();
}

// Two servers cannot share a port. Invalid addresses are reported where they are used.
absl::Status CheckPorts(const DaemonOptions& options) {
  const absl::StatusOr<ListenAddress> calls = ParseListenAddress(options.listen);
  const absl::StatusOr<ListenAddress> metrics = ParseListenAddress(options.metrics_listen);
  if (!calls.ok() || !metrics.ok() || calls->port == 0 || calls->port != metrics->port)
    return absl::OkStatus();
  const auto takes_all = [](const std::string& host) { return host == "0.0.0.0" || host == "::"; };
  if (calls->host != metrics->host && !takes_all(calls->host) && !takes_all(metrics->host)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("--listen ", options.listen, " and --metrics-listen ",
                                                 options.metrics_listen,
                                                 " have one port: give the metrics another one"));
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
  app.set_help_flag("-h,--help", "Print this and exit");
  AddOptions(&options, &app);
  const std::vector<std::string> names = OptionNames(app);
  app.set_config("--config", "",
                 "YAML file with any of these options by their names; a flag counts more than the file")
      ->type_name("FILE");
  app.add_flag("--check", parsed.check,
               "Say whether a daemon could run with these options, and what is to be mended; start none, and "
               "change nothing")
      ->configurable(false);
  app.add_option(
         "--restore-backup", options.restore_backup,
         "Put a copy of this backup, a file or an id of `tandem backup list`, in the place of the database, "
         "keep what was there beside it, and end. No daemon may run on the state folder")
      ->type_name("BACKUP")
      ->configurable(false);
  app.add_flag("--begin-anew", parsed.begin_anew,
               "Move the database, backups, jobs and uploads of the state folder into a new folder in it, so "
               "that the next daemon begins with nothing, and end. No daemon may run on the state folder")
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
  } catch (const CLI::ConfigError& error) {
    return absl::InvalidArgumentError(absl::StrCat("the --config file ", config(), ": ", error.what()));
  } catch (const CLI::ExtrasError&) {
    return absl::InvalidArgumentError(ExplainUnknown(arguments, names));
  } catch (const CLI::Error& error) {
    // CLI11 does not say if the fault is on the command line or in the file.
    return absl::InvalidArgumentError(
        config().empty()
            ? error.what()
            : absl::StrCat(error.what(), " (on the command line, or in the --config file ", config(), ")"));
  }
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key must be given together");
  }
  if (!options.tls_client_ca.empty() && options.tls_cert.empty()) {
    return absl::InvalidArgumentError("--tls-client-ca needs --tls-cert and --tls-key");
  }
  for (const absl::Status& status : {CheckValues(app), CheckPorts(options), CheckFetchOptions(options)}) {
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
