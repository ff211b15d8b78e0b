#include "server/clusters/ssh/ssh_command_client.h"

#include <cstdlib>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/base/command.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin";
// ssh's own errors.
constexpr int kSshFailed = 255;
// The bytes of an error that a message quotes.
constexpr size_t kMostQuoted = 500;
// The workers of a job. A hostile worker may change its description.
constexpr int kMostWorkers = 1024;

// Each task's processes have the task's description in their environment.
// - `-O` leaves out the processes of other users, because they may have the same words.
// - /proc/driver/nvidia/gpus has a folder for each GPU. The program nvidia-smi may take seconds.
// - A machine is its boot, its processes and its name. Containers have processes of their own.
// - grep's code is 2 if a process ended meanwhile. With a larger code, grep did not read the processes.
constexpr char kLook[] = R"script(unset OMP_NUM_THREADS OMP_THREAD_LIMIT
echo "cores $(nproc)"
echo "gpus $(ls /proc/driver/nvidia/gpus 2>/dev/null | wc -l)"
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null) && space=$(readlink /proc/self/ns/pid) &&
  echo "machine $boot/$space/$(uname -n)"
files=$(grep -slaF TANDEM_TASK= /proc/[0-9]*/environ)
[ $? -le 2 ] || { echo "cannot list the processes" >&2; exit 1; }
for file in $files; do
  [ -O "$file" ] || continue
  { tr '\0' '\n' <"$file" | sed -n 's/^TANDEM_TASK=/task /p'; } 2>/dev/null
done | sort -u
echo end
)script";

// The signal goes to the scripts of the tasks, which send SIGTERM on. SIGKILL goes to all processes, also to
// a hostile worker that has removed its description.
constexpr char kStop[] = R"script(for file in $(grep -slaF TANDEM_TASK=@HEAD@ /proc/[0-9]*/environ); do
  [ -O "$file" ] || continue
  case $({ tr '\0' '\n' <"$file" | sed -n 's/^TANDEM_TASK=//p'; } 2>/dev/null) in
    @HEAD@*@HOST@*) ;;
    *) continue ;;
  esac
  folder=${file%/environ}
  workers=
  if grep -sqaF tandem-task "$folder/cmdline"; then
    [ @SIGNAL@ = TERM ] || read -r workers <"$folder/task/${folder#/proc/}/children"
  else
    [ @SIGNAL@ = KILL ] || continue
  fi
  kill -@SIGNAL@ "${folder#/proc/}" $workers
done 2>/dev/null
exit 0
)script";

SshCommandClient::Options WithPath(SshCommandClient::Options options) {
  if (!options.path.empty()) return options;
  const char* const path = getenv("PATH");
  options.path = path != nullptr && *path != '\0' ? path : kDefaultPath;
  return options;
}

// The daemon's secrets stay out of ssh's environment.
std::vector<std::string> EnvironmentWith(absl::string_view path) {
  std::vector<std::string> environment = {absl::StrCat("PATH=", path), "LC_ALL=C"};
  for (const char* const name : {"HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK"}) {
    if (const char* const value = getenv(name); value != nullptr) {
      environment.push_back(absl::StrCat(name, "=", value));
    }
  }
  return environment;
}

// Returns the last line of a program's errors.
std::string LastLine(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const size_t begin = text.rfind('\n');
  text = text.substr(begin == absl::string_view::npos ? 0 : begin + 1);
  return std::string(absl::StripAsciiWhitespace(text.substr(0, kMostQuoted)));
}

std::string GpuList(const std::vector<int>& gpus) { return gpus.empty() ? "-" : absl::StrJoin(gpus, ","); }

std::optional<std::vector<int>> ParseGpus(absl::string_view text) {
  std::vector<int> gpus;
  if (text == "-") return gpus;
  for (const absl::string_view number : absl::StrSplit(text, ',')) {
    if (!absl::SimpleAtoi(number, &gpus.emplace_back()) || gpus.back() < 0) return std::nullopt;
  }
  return gpus;
}

// Reads the words after "task". Nullopt if they have another form.
std::optional<std::pair<std::string, HostTask>> ParseTask(const std::vector<absl::string_view>& words) {
  if (words.size() != 7) return std::nullopt;
  HostTask task;
  task.job_id = std::string(words[1]);
  const std::vector<absl::string_view> place = absl::StrSplit(words[3], '/');
  if (place.size() != 2 || !absl::SimpleAtoi(words[2], &task.attempt) || task.attempt < 1 ||
      !absl::SimpleAtoi(place[0], &task.rank) || task.rank < 0 ||
      !absl::SimpleAtoi(place[1], &task.workers) || task.workers <= task.rank ||
      task.workers > kMostWorkers || !absl::SimpleAtoi(words[5], &task.cores) || task.cores < 1) {
    return std::nullopt;
  }
  std::optional<std::vector<int>> gpus = ParseGpus(words[6]);
  if (!gpus.has_value()) return std::nullopt;
  task.gpus = *std::move(gpus);
  return std::make_pair(std::string(words[4]), std::move(task));
}

}  // namespace

std::string DescribeTask(const HostTask& task, const std::string& host) {
  return absl::StrCat(task.job_id, " ", task.attempt, " ", task.rank, "/", task.workers, " ", host, " ",
                      task.cores, " ", GpuList(task.gpus));
}

absl::StatusOr<Host> ParseLook(const std::string& host, absl::string_view output) {
  Host look;
  look.name = host;
  bool is_whole = false;
  for (const absl::string_view line : absl::StrSplit(output, '\n', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() == 2 && words[0] == "cores" && absl::SimpleAtoi(words[1], &look.cores)) continue;
    if (words.size() == 2 && words[0] == "gpus" && absl::SimpleAtoi(words[1], &look.gpus)) continue;
    if (words.size() == 2 && words[0] == "machine") look.machine = std::string(words[1]);
    if (words.size() == 1 && words[0] == "end") is_whole = true;
    // A login script may print other lines. A task in another form is another program's.
    if (words.empty() || words[0] != "task") continue;
    if (auto task = ParseTask(words); task.has_value() && task->first == host) {
      look.tasks.push_back(std::move(task->second));
    }
  }
  if (!is_whole || look.cores < 1) {
    return absl::InternalError(absl::StrCat("cannot read the size of host ", host, ": it says \"",
                                            LastLine(output), "\"; the host needs Linux, sh and nproc"));
  }
  return look;
}

SshCommandClient::SshCommandClient(Options options) : options_(WithPath(std::move(options))) {}

absl::StatusOr<std::string> SshCommandClient::Run(const std::string& host, const std::string& script) {
  Command command;
  command.program = "ssh";
  command.arguments = {"-T",
                       "-oBatchMode=yes",
                       absl::StrCat("-oConnectTimeout=", absl::ToInt64Seconds(options_.connect_limit)),
                       "-oClearAllForwardings=yes",
                       "--",
                       host,
                       "exec /bin/sh -s"};
  command.environment = EnvironmentWith(options_.path);
  command.path = options_.path;
  command.time_limit = options_.time_limit;
  command.input = script;
  const absl::StatusOr<CommandResult> result = RunCommand(command);
  if (absl::IsNotFound(result.status())) {
    return absl::UnavailableError(absl::StrCat("cannot reach host ", host, ": ", result.status().message(),
                                               "; install openssh-client"));
  }
  if (absl::IsDeadlineExceeded(result.status())) {
    return absl::UnavailableError(absl::StrCat(
        "cannot reach host ", host, ": no answer within ", absl::FormatDuration(options_.time_limit),
        "; try `time ssh ", host, " true` as the daemon's user: a script of its login may be slow"));
  }
  if (!result.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot reach host ", host, ": ", result.status().message()));
  }
  if (result->exit_code == kSshFailed || result->exit_code > 128) {
    const std::string why = LastLine(result->standard_error);
    return absl::UnavailableError(absl::StrCat("cannot reach host ", host, ": ",
                                               why.empty() ? "ssh ended without a message" : why,
                                               "; try `ssh ", host, " true` as the daemon's user"));
  }
  if (result->exit_code != 0) {
    return absl::InternalError(absl::StrCat(
        "host ", host, " says: ", LastLine(absl::StrCat(result->standard_output, result->standard_error))));
  }
  return result->standard_output;
}

absl::StatusOr<Host> SshCommandClient::Look(const std::string& host) {
  TANDEM_ASSIGN_OR_RETURN(const std::string output, Run(host, kLook));
  return ParseLook(host, output);
}

absl::Status SshCommandClient::Start(const std::string& host, const HostStart& start) {
  std::string script = absl::StrCat("attempt=", ShellQuote(start.attempt_folder),
                                    "\ntask=", ShellQuote(start.script), R"script(
log=$attempt/batch.log
[ -d "$attempt" ] || { echo "$attempt is missing; every node needs this path"; exit 76; }
{ [ ! -L "$log" ] && [ ! -p "$log" ] && : >>"$log"; } 2>/dev/null || {
  echo "$log cannot be written; every node must be able to write there"
  exit 76
}
cd / || exit
)script");
  int local_rank = 0;
  for (const HostTask& task : start.tasks) {
    absl::StrAppend(&script, "TANDEM_TASK=", ShellQuote(DescribeTask(task, host)),
                    " setsid /bin/sh -c \"$task\" tandem-task ", task.rank, " ", local_rank++, " ",
                    ShellQuote(host), " ", GpuList(task.gpus), " </dev/null >>\"$log\" 2>&1 &\n");
  }
  return Run(host, script).status();
}

absl::Status SshCommandClient::Stop(const std::string& host, const std::string& job_id, int attempt,
                                    HostStop how) {
  return Run(host,
             absl::StrReplaceAll(kStop, {{"@HEAD@", ShellQuote(absl::StrCat(job_id, " ", attempt, " "))},
                                         {"@HOST@", ShellQuote(absl::StrCat(" ", host, " "))},
                                         {"@SIGNAL@", how == HostStop::kKill ? "KILL" : "TERM"}}))
      .status();
}

absl::Status SshCommandClient::CheckPaths(const std::string& host, const std::vector<std::string>& paths) {
  std::string script = "for path in";
  for (const std::string& path : paths) absl::StrAppend(&script, " ", ShellQuote(path));
  absl::StrAppend(&script, "; do [ -e \"$path\" ] || echo \"missing $path\"; done\n");
  TANDEM_ASSIGN_OR_RETURN(const std::string output, Run(host, script));
  std::vector<std::string> missing;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    if (absl::ConsumePrefix(&line, "missing ")) missing.emplace_back(line);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("host ", host, " lacks ", absl::StrJoin(missing, ", "), "; every host needs these paths"));
}

}  // namespace tandem
