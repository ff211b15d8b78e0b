#ifndef TANDEM_SERVER_DAEMON_OPTIONS_H_
#define TANDEM_SERVER_DAEMON_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tandem {

// A daemon's options. The flags of the same names describe them (options.cc).
struct DaemonOptions {
  std::string state_folder;
  // If not empty: restore the database from this backup, and exit.
  std::string restore_backup;
  std::string listen = "127.0.0.1:7447";
  std::string tls_cert;
  std::string tls_key;
  // Empty: clients need no certificate.
  std::string tls_client_ca;
  bool insecure_listen_beyond_loopback = false;
  // Empty: no metrics are served.
  std::string metrics_listen;
  bool metrics_beyond_loopback = false;
  std::vector<std::string> data_folders;
  int64_t upload_limit = int64_t{256} << 30;
  int64_t upload_space = 0;
  std::vector<std::string> fetch_from = {"public", "s3://*"};
  int64_t cache_bytes = int64_t{50} << 30;
  std::string datasets_mirror;
  int cpu_devices = 0;
  int threads_per_cpu_device = 0;
  int reference_devices = 0;
  int64_t memory_bytes = 0;
  int64_t gpu_memory_limit = 0;
  int64_t gpu_workspace_limit = 0;
  std::string worker_program;
  // "on", "best-effort" or "off".
  std::string worker_sandbox = "best-effort";
  absl::Duration cancel_grace = absl::Minutes(2);
  absl::Duration worker_silence_limit = absl::Seconds(30);
  absl::Duration collective_time_limit = absl::Minutes(30);
  // Empty: the daemon has no cluster.
  std::string shared_folder;
  std::string worker_listen;
  std::vector<std::string> slurm_allow_arguments;
  // Empty: the cluster is Slurm's.
  std::vector<std::string> ssh_hosts;
  int model_workers = 2;
  absl::Duration model_time_limit = absl::Minutes(10);
  absl::Duration model_idle_time = absl::Minutes(1);
  int user_max_devices = 0;
  int user_max_queued_jobs = 0;
  int user_max_streams = 256;
  double user_max_call_rate = 100;
  int64_t user_max_disk = 0;
  int64_t max_queued_jobs = 100'000;
  int max_connections = 4096;
  absl::Duration fair_share_half_life = absl::Hours(24);
  absl::Duration ageing_interval = absl::Hours(1);
  // 0: backups are only made on request.
  absl::Duration backup_every = absl::Hours(24);
  int backups_kept = 7;
  // 0: jobs are kept until somebody deletes them.
  absl::Duration keep_ended_jobs = absl::ZeroDuration();
  std::string log_level = "info";
  std::string log_format = "text";
};

// A parsed command line.
struct ParsedOptions {
  DaemonOptions options;
  // Set for --help or --version. The program prints this text and exits.
  std::string text;
  // --check: report if a daemon could run with these options, and exit.
  bool check = false;
  // --begin-anew: move the state folder's database aside, and exit. Excludes restore_backup.
  bool begin_anew = false;
};

// Parses the command line and the YAML file of --config. A flag overrides the file. INVALID_ARGUMENT names
// the fault, and suggests the name that was probably meant.
absl::StatusOr<ParsedOptions> ParseDaemonOptions(const std::vector<std::string>& arguments);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_OPTIONS_H_
