#include "server/daemon/check.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/command.h"
#include "engine/base/version.h"
#include "server/auth/certificate_validity.h"
#include "server/auth/listen_policy.h"
#include "server/auth/tls_files.h"
#include "server/auth/token.h"
#include "server/daemon/begin_anew.h"
#include "server/daemon/cluster_check.h"
#include "server/daemon/crash_folder.h"
#include "server/daemon/monitoring.h"
#include "server/rpc/rpc_server.h"
#include "server/store/backups.h"
#include "server/store/recovery.h"
#include "server/store/reserved_room.h"
#include "server/workers/sandbox_support.h"

namespace tandem {
namespace {

using Verdict = Check::Verdict;

// More bytes than a starting daemon writes.
constexpr int64_t kStartWrites = int64_t{1} << 20;
// The most characters of a program's output in a message.
constexpr size_t kMostShown = 300;
// With less free space, the state folder's disk is soon full.
constexpr int64_t kLittleSpace = int64_t{1} << 30;

class Checks {
 public:
  void Fine(std::string subject, std::string message) { Add(Verdict::kFine, subject, message); }
  void Warn(std::string subject, std::string message) { Add(Verdict::kWarning, subject, message); }
  void Fail(std::string subject, std::string message) { Add(Verdict::kProblem, subject, message); }
  // Adds a problem with the status's message unless the status is OK.
  bool Require(const std::string& subject, const absl::Status& status) {
    if (!status.ok()) Fail(subject, std::string(status.message()));
    return status.ok();
  }
  std::vector<Check> Take() && { return std::move(checks_); }

 private:
  void Add(Verdict verdict, std::string subject, std::string message) {
    checks_.push_back({verdict, std::move(subject), std::move(message)});
  }
  std::vector<Check> checks_;
};

// Returns true if a daemon holds the state folder. Tries the folder's lock and releases it at once.
bool IsHeld(const std::string& state_folder) {
  const int file = open((state_folder + "/daemon.lock").c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  const bool held = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  return held;
}

// Checks that the disk has room for a daemon's start.
absl::Status TryToWrite(const std::string& folder) {
  std::string path = folder + "/check-XXXXXX";
  const int file = mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return absl::ErrnoToStatus(errno, "cannot create a file in it");
  unlink(path.c_str());
  const std::string page(kStartWrites, 'x');
  errno = 0;
  const bool done = write(file, page.data(), page.size()) == ssize_t(page.size()) && fsync(file) == 0;
  // A short write sets no errno: the disk had no room for the rest.
  const int error = errno == 0 ? ENOSPC : errno;
  close(file);
  return done ? absl::OkStatus() : absl::ErrnoToStatus(error, "cannot write to it");
}

// Returns the address that the running daemon wrote; "" if unknown.
std::string RunningAddress(const std::string& state_folder) {
  std::ifstream file(state_folder + "/address");
  std::string address;
  std::getline(file, address);
  return address;
}

// Opens the file as a daemon does, for reading and writing.
bool CheckOpens(const std::string& path, Checks* checks) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (file >= 0) {
    close(file);
    return true;
  }
  const int why = errno;
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(path, error);
  checks->Fail(path, absl::StrCat(error ? "" : absl::StrCat("is a link to ", target.string(), ", which "),
                                  "cannot be opened for reading and writing: ", strerror(why),
                                  why == ENOENT   ? "; is its disk mounted?"
                                  : why == EACCES ? "; give it to the user that runs tandemd"
                                                  : ""));
  return false;
}

void CheckDatabaseFile(const std::string& folder, Checks* checks) {
  const std::string path = folder + "/tandem.db";
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return;
  const absl::StatusOr<std::vector<v1::Backup>> backups =
      Backups({.folder = folder + "/backups", .database_path = path}).List();
  const bool has_backups = backups.ok() && !backups->empty();
  const absl::StatusOr<bool> is_there = IsDatabaseThere(path);
  if (!checks->Require(path, is_there.status())) return;
  const bool is_missing = !*is_there;
  if (!is_missing && !CheckOpens(path, checks)) return;
  // The same condition as in PrepareDatabase.
  if (is_missing || (std::filesystem::file_size(path, error) == 0 && !error)) {
    const std::string what = is_missing ? "is missing" : "is empty";
    const std::string remains = RemainsOf(folder);
    if (has_backups) {
      checks->Warn(path, what + ": the daemon will restore the newest undamaged backup (backups/)");
    } else if (!remains.empty()) {
      checks->Fail(
          path, absl::StrCat(what, ", but ", remains,
                             " belong to it; bring it back, restore a backup with --restore-backup FILE, or "
                             "move everything aside with --begin-anew"));
    }
    return;
  }
  char magic[16] = "";
  std::ifstream database(path, std::ios::binary);
  if (database && (!database.read(magic, sizeof(magic)) || memcmp(magic, "SQLite format 3", 16) != 0)) {
    if (has_backups) {
      checks->Warn(path, "is not a database: the daemon will restore the newest undamaged backup (backups/)");
    } else {
      checks->Fail(path,
                   "is not a database, and there is no backup; restore one with --restore-backup FILE, or "
                   "move everything aside with --begin-anew");
    }
  }
}

// Checks that a daemon may write to the parts that an earlier daemon made, perhaps as another user.
void CheckOwnParts(const std::string& folder, Checks* checks) {
  std::error_code error;
  for (const char* name : {"daemon.lock", "audit.log", "tandem.db-wal", "tandem.db-shm"}) {
    const std::string path = absl::StrCat(folder, "/", name);
    if (std::filesystem::exists(path, error)) CheckOpens(path, checks);
  }
  for (const char* name : {"jobs", "uploads", "cache", "public", "backups", "kept-weights", "workers"}) {
    const std::string path = absl::StrCat(folder, "/", name);
    if (!std::filesystem::exists(path, error) || access(path.c_str(), W_OK | X_OK) == 0) continue;
    checks->Fail(path, absl::StrCat("user ", geteuid(), " may not write to it: ", strerror(errno),
                                    "; give it to the user that runs tandemd"));
  }
}

void CheckStateFolder(const std::string& folder, bool is_running, Checks* checks) {
  const std::string subject = absl::StrCat("state folder ", folder);
  std::error_code error;
  std::filesystem::path existing = std::filesystem::absolute(folder, error);
  while (!std::filesystem::exists(existing, error) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  const bool is_there = std::filesystem::is_directory(folder, error);
  if (!std::filesystem::is_directory(existing, error)) {
    checks->Fail(subject, absl::StrCat(existing.string(), " is not a folder"));
    return;
  }
  if (access(existing.c_str(), W_OK | X_OK) != 0) {
    const int why = errno;
    checks->Fail(subject, why == EROFS
                              ? absl::StrCat(existing.string(),
                                             " is on a disk that is mounted read-only; mount it writable")
                              : absl::StrCat("user ", geteuid(), " may not write to ", existing.string(),
                                             ": ", strerror(why), "; give it to the user that runs tandemd"));
    return;
  }
  struct stat info = {};
  if (is_there && stat(folder.c_str(), &info) == 0 && (info.st_mode & 022) != 0) {
    checks->Fail(subject, absl::StrFormat("other users may write to it (mode %04o); chmod 700 %s",
                                          info.st_mode & 07777, folder));
  }
  if (const int64_t free = ReservedRoom::AvailableBytes(existing.string()); free >= 0) {
    const std::string left =
        absl::StrFormat("%.1f GiB of its disk are free", static_cast<double>(free) / (int64_t{1} << 30));
    const absl::Status taken = is_there ? TryToWrite(folder) : absl::OkStatus();
    const bool is_full = !taken.ok() ? absl::IsResourceExhausted(taken) : free < kStartWrites;
    const uintmax_t kept = std::filesystem::file_size(folder + "/tandem.db-reserve", error);
    if (is_full && !error && kept >= static_cast<uintmax_t>(ReservedRoom::kSlice)) {
      checks->Warn(subject, absl::StrCat("its disk is full; ", left,
                                         "; make room. The daemon starts with its reserved room, and jobs "
                                         "can be deleted, but not submitted"));
    } else if (!taken.ok() || is_full) {
      checks->Fail(
          subject,
          absl::StrCat(taken.ok() ? "its disk is full" : taken.message(), "; ", left,
                       "; make room. While a daemon runs, `tandem delete` works on a full disk, too"));
    } else if (free < kLittleSpace) {
      checks->Warn(subject, absl::StrCat(left,
                                         ", which checkpoints and events soon fill; make room, for example "
                                         "with `tandem delete`, which works on a full disk, too"));
    } else {
      checks->Fine(subject, absl::StrCat(is_running ? "a daemon uses it, so no other can start; "
                                         : is_there ? ""
                                                    : "will be created; ",
                                         left));
    }
  }
  CheckOwnParts(folder, checks);
  CheckDatabaseFile(folder, checks);
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!absl::StartsWith(name, "tandem.db.damaged-")) continue;
    checks->Warn(entry->path().string(),
                 "is an old database that was damaged or replaced; remove it if nobody needs it, and check "
                 "the disk (dmesg, smartctl) if nobody replaced it");
  }
  if (const std::vector<std::string> reports = FindCrashReports(folder); !reports.empty()) {
    checks->Warn(subject, absl::StrCat("crash reports of daemons: ", reports.size(), ", the newest is ",
                                       reports.front(), "; report it, then remove the files"));
  }
}

void CheckToken(const std::string& state_folder, Checks* checks) {
  const std::string path = state_folder + "/token";
  const absl::Status status = LoadToken(path).status();
  if (absl::IsNotFound(status)) return;
  const std::string subject = absl::StrCat("token file ", path);
  if (checks->Require(subject, status)) checks->Fine(subject, "readable only by its owner");
}

void CheckTls(const DaemonOptions& options, Checks* checks) {
  if (options.tls_cert.empty()) return;
  const std::string subject = absl::StrCat("TLS certificate ", options.tls_cert);
  // A daemon with a broken TLS file does not start.
  const absl::StatusOr<TlsContent> content =
      ReadTlsFiles({options.tls_cert, options.tls_key, options.tls_client_ca});
  if (!checks->Require(subject, content.status())) return;
  if (const auto trouble = TroubleOf(content->validity, absl::Now()); !trouble.has_value()) {
    checks->Fine(subject, absl::StrCat("with its key, valid until ", ShownTime(content->validity.end)));
  } else if (trouble->is_refused) {
    checks->Fail(subject, trouble->text);
  } else {
    checks->Warn(subject, trouble->text);
  }
}

void CheckListening(const DaemonOptions& options, bool is_running, Checks* checks) {
  const std::string subject = absl::StrCat("--listen ", options.listen);
  const absl::StatusOr<ListenAddress> address = ParseListenAddress(options.listen);
  if (checks->Require(subject, address.status()) &&
      checks->Require(subject, CheckListenPolicy(*address, !options.tls_cert.empty(),
                                                 options.insecure_listen_beyond_loopback))) {
    // The options may name another host than the running daemon's options did, with the same port.
    const absl::StatusOr<ListenAddress> running = ParseListenAddress(RunningAddress(options.state_folder));
    const bool is_its_own = is_running && running.ok() && running->port == address->port;
    if (checks->Require(subject,
                        is_its_own ? absl::OkStatus() : RpcServer::CheckAddress(*address, "--listen"))) {
      if (options.insecure_listen_beyond_loopback && !address->IsLoopback() && options.tls_cert.empty()) {
        checks->Warn(subject, "without TLS, as requested: others on the network can read tokens and data");
      } else {
        checks->Fine(subject, is_its_own ? "used by the running daemon" : "free");
      }
    }
  }
  if (options.metrics_listen.empty()) return;
  const std::string metrics = absl::StrCat("--metrics-listen ", options.metrics_listen);
  const absl::StatusOr<ListenAddress> metrics_address = ParseListenAddress(options.metrics_listen);
  if (checks->Require(metrics, metrics_address.status()) &&
      checks->Require(metrics, CheckMetricsListenPolicy(*metrics_address, options.metrics_beyond_loopback))) {
    const absl::Status free = RpcServer::CheckAddress(*metrics_address, "--metrics-listen");
    // The metrics address of a running daemon is unknown.
    if (!free.ok() && is_running) {
      checks->Fine(metrics, "in use, probably by the running daemon");
    } else if (checks->Require(metrics, free)) {
      checks->Fine(metrics, "free");
    }
  }
}

// Starts the program with --version: it may lack a library.
void CheckWorkerProgram(const std::string& program, Checks* checks) {
  const std::string subject = "--worker-program";
  if (access(program.c_str(), X_OK) != 0) {
    return checks->Fail(subject, absl::StrCat("cannot run ", program, ": ", strerror(errno)));
  }
  std::error_code error;
  Command command;
  command.program = std::filesystem::absolute(program, error).string();
  command.arguments = {"--version"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    command.environment.emplace_back(*variable);
  }
  const absl::StatusOr<CommandResult> result = RunCommand(command);
  if (!checks->Require(subject, result.status())) return;
  const absl::string_view said = absl::StripAsciiWhitespace(
      result->standard_output.empty() ? result->standard_error : result->standard_output);
  const absl::string_view line = said.substr(0, std::min(said.find('\n'), kMostShown));
  if (result->exit_code != 0 || !absl::StartsWith(line, "tandem-worker ")) {
    checks->Fail(subject, absl::StrCat("cannot use ", program, ": with --version it exits with code ",
                                       result->exit_code, " and prints '", line,
                                       "'; name the tandem-worker of this tandemd"));
  } else if (line != absl::StrCat("tandem-worker ", kVersion)) {
    checks->Warn(subject, absl::StrCat(program, " is ", line,
                                       "; name the tandem-worker of this tandemd, which is ", kVersion));
  } else {
    checks->Fine(subject, program);
  }
}

void CheckFolders(const DaemonOptions& options, Checks* checks) {
  CheckWorkerProgram(options.worker_program, checks);
  const std::string sandbox = absl::StrCat("--worker-sandbox ", options.worker_sandbox);
  const std::string missing = MissingOfSandbox();
  if (options.worker_sandbox == "off") {
    checks->Warn(sandbox, "workers have all rights of the daemon's user");
  } else if (missing.empty()) {
    checks->Fine(sandbox, absl::StrCat("Landlock ", LandlockVersion(), " and filters for system calls"));
  } else if (options.worker_sandbox == "on") {
    checks->Fail(
        sandbox,
        absl::StrCat(missing, "; --worker-sandbox=best-effort confines workers as far as the kernel can"));
  } else {
    checks->Warn(sandbox, absl::StrCat("workers are only partly confined: ", missing));
  }
  for (const std::string& folder : options.data_folders) {
    const std::string subject = absl::StrCat("data folder ", folder);
    std::error_code error;
    const std::filesystem::file_type found = std::filesystem::status(folder, error).type();
    if (found == std::filesystem::file_type::not_found) {
      checks->Warn(subject, "does not exist; the daemon finds no data there until it does");
    } else if (error) {
      checks->Warn(subject, absl::StrCat("user ", geteuid(), " cannot reach it: ", error.message()));
    } else if (found != std::filesystem::file_type::directory) {
      checks->Warn(subject, "is not a folder; name its folder");
    } else if (access(folder.c_str(), R_OK | X_OK) != 0) {
      checks->Warn(subject, absl::StrCat("user ", geteuid(), " may not read it: ", strerror(errno)));
    } else {
      checks->Fine(subject, "readable");
    }
  }
}

}  // namespace

std::vector<Check> CheckDaemon(const DaemonOptions& options) {
  Checks checks;
  const bool is_running = IsHeld(options.state_folder);
  CheckStateFolder(options.state_folder, is_running, &checks);
  CheckToken(options.state_folder, &checks);
  CheckListening(options, is_running, &checks);
  CheckTls(options, &checks);
  CheckFolders(options, &checks);
  std::vector<Check> all = std::move(checks).Take();
  for (Check& check : CheckCluster(options, FaultsOfClusterOptions(options), is_running)) {
    all.push_back(std::move(check));
  }
  return all;
}

std::string ConclusionOf(const std::vector<Check>& checks, const DaemonOptions& options) {
  const bool is_wrong = std::any_of(checks.begin(), checks.end(),
                                    [](const Check& check) { return check.verdict == Verdict::kProblem; });
  if (is_wrong) return "tandemd could not run with these options";
  return IsHeld(options.state_folder) ? "tandemd could run with these options once the running one has ended"
                                      : "tandemd could run with these options";
}

}  // namespace tandem
