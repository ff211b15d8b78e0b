#include "server/clusters/slurm/sbatch.h"

#include <signal.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "server/clusters/slurm/slurm_text.h"

namespace tandem {
namespace {

// Options of sbatch that would make another job than Tandem's, or no job.
constexpr absl::string_view kForbidden[] = {
    "array",     "clusters", "comment", "gid",     "help", "parsable",
    "test-only", "uid",      "usage",   "version", "wait", "wrap",
};
// sbatch takes the beginning of an option's name if it is unique. Shorter beginnings are never unique.
constexpr size_t kShortestName = 3;

// The words of Slurm's errors, and the field that they are about.
struct Refusal {
  absl::string_view words;
  absl::string_view field;
};
constexpr Refusal kRefusals[] = {
    {"invalid partition", "partition"},
    {"partition or partition", "partition"},
    {"partition specified", "partition"},
    {"access/permission denied", "partition"},
    {"invalid account", "account"},
    {"invalid qos", "qos"},
    {"qos permission denied", "qos"},
    {"time limit", "time_limit"},
    {"walldurationperjob", "time_limit"},
    {"time specification", "time_limit"},
    {"generic resource", "gpus_per_node"},
    {"gres", "gpus_per_node"},
    {"trackable resource", "gpus_per_node"},
    {"cpu count per node", "cpus_per_task"},
    {"more processors requested", "cpus_per_task"},
    {"cpus-per-task", "cpus_per_task"},
    {"node count", "nodes"},
    {"node configuration", "nodes"},
    {"unrecognized option", "extra_arguments"},
    {"unknown option", "extra_arguments"},
    {"invalid feature", "extra_arguments"},
    {"invalid constraint", "extra_arguments"},
    {"requires an argument", "extra_arguments"},
    {"is ambiguous", "extra_arguments"},
};

// Words of errors that leave the outcome open: a job may exist, or a later call may succeed.
constexpr absl::string_view kNoAnswer[] = {
    "unable to contact slurm controller",
    "communication",
    "connection",
    "timed out",
    "zero bytes were transmitted",
    "message receive failure",
    "message send failure",
    "message shutdown failure",
    "unexpected message received",
    "insane message length",
    "incompatible versions of client and server",
    "authentication",
    "standby mode",
    "temporarily unable to accept job",
    "resource temporarily unavailable",
    "slurm backup controller",
    "in state recovery",
    "unable to establish control machine address",
    "resolve",
    "munge",
    "i/o error",
    "could not load",
    "configuration file",
    "shared librar",
};

// Follows each refusal because of a limit of an account, a user or a quality of service. The limit's own name
// is before it, such as "QOSMaxSubmitJobPerUserLimit".
constexpr absl::string_view kAllLimits = "(job submit limit, user's size and/or time limits)";
// Is in the names of all limits of the number of jobs that wait or run.
constexpr absl::string_view kSubmitLimit = "submitjob";

// True if an argument of a program can have this text.
bool IsArgument(absl::string_view text) { return !absl::StrContains(text, '\0'); }

// Returns true if the name is a forbidden option or its beginning.
bool IsForbidden(absl::string_view name) {
  return std::any_of(std::begin(kForbidden), std::end(kForbidden), [&](absl::string_view option) {
    return name == option || (name.size() >= kShortestName && absl::StartsWith(option, name));
  });
}

void CheckExtraArgument(absl::string_view argument, FieldViolations& violations) {
  constexpr char kField[] = "extra_arguments";
  absl::string_view name = argument;
  if (!absl::ConsumePrefix(&name, "--") || name.empty() || !absl::ascii_isalpha(name[0]) ||
      !IsArgument(argument)) {
    violations.Add(
        kField, absl::StrCat("\"", argument, "\" is no whole long option of sbatch; write \"--NAME=VALUE\""));
    return;
  }
  name = name.substr(0, name.find('='));
  if (IsForbidden(name)) {
    violations.Add(kField, absl::StrCat("\"", argument, "\" is not allowed: Tandem sets --", name,
                                        " itself, or needs it unset; leave the option out"));
  }
}

void CheckPath(absl::string_view field, absl::string_view path, FieldViolations& violations) {
  if (!absl::StartsWith(path, "/") || !IsArgument(path)) {
    violations.Add(field, absl::StrCat("\"", path, "\" is no absolute path"));
  }
}

void CheckCount(absl::string_view field, int count, int least, FieldViolations& violations) {
  if (count < least) violations.Add(field, absl::StrCat(count, " is less than ", least));
}

// The options of a submission and of a test.
std::vector<std::string> CommonArguments(const SlurmRequest& request) {
  // sbatch takes the last of two equal options, so Tandem's options win.
  std::vector<std::string> arguments = request.extra_arguments;
  const auto add = [&arguments](absl::string_view option, absl::string_view value) {
    if (!value.empty()) arguments.push_back(absl::StrCat(option, "=", value));
  };
  add("--job-name", request.name);
  add("--partition", request.partition);
  add("--account", request.account);
  add("--qos", request.qos);
  add("--comment", request.comment);
  arguments.push_back(absl::StrCat("--nodes=", request.nodes));
  arguments.push_back(absl::StrCat("--ntasks-per-node=", request.tasks_per_node));
  arguments.push_back(absl::StrCat("--cpus-per-task=", request.cpus_per_task));
  if (request.gpus_per_node > 0) arguments.push_back(absl::StrCat("--gres=gpu:", request.gpus_per_node));
  if (request.time_limit > absl::ZeroDuration()) add("--time", FormatSlurmDuration(request.time_limit));
  // Slurm ends a preempted or cancelled job with SIGTERM. So another signal tells the time limit from these.
  arguments.push_back(absl::StrCat("--signal=B:USR1@", absl::ToInt64Seconds(kSlurmWarning)));
  arguments.push_back("--no-requeue");
  // sbatch runs with a small environment, so that the daemon's secrets stay out of the job.
  arguments.push_back("--export=ALL");
  add("--chdir", request.work_folder);
  return arguments;
}

// Returns the sentences in sbatch's errors, without the program's name.
std::string WordsOf(const CommandResult& result) {
  std::vector<std::string> words;
  for (const absl::string_view line : absl::StrSplit(result.standard_error, '\n', absl::SkipWhitespace())) {
    absl::string_view text = absl::StripAsciiWhitespace(line);
    absl::ConsumePrefix(&text, "sbatch: ");
    absl::ConsumePrefix(&text, "error: ");
    absl::ConsumePrefix(&text, "fatal: ");
    words.emplace_back(text);
  }
  if (words.empty()) return absl::StrCat("sbatch ended with code ", result.exit_code, " and no message");
  return absl::StrJoin(words, "; ");
}

// Returns the error of an sbatch that failed.
absl::Status RefusalOf(const CommandResult& result) {
  const std::string words = WordsOf(result);
  const std::string lower = absl::StrReplaceAll(absl::AsciiStrToLower(words), {{kAllLimits, ""}});
  const auto has = [&lower](absl::string_view text) { return absl::StrContains(lower, text); };
  // A killed sbatch may have submitted the job. Codes above the signals' are sbatch's own.
  const bool is_killed = result.exit_code > 128 && result.exit_code <= 128 + SIGRTMAX;
  if (is_killed || result.standard_error.empty() ||
      std::any_of(std::begin(kNoAnswer), std::end(kNoAnswer), has)) {
    return absl::UnavailableError(absl::StrCat("cannot reach Slurm: ", words));
  }
  if (has(kSubmitLimit)) {
    return absl::AbortedError(absl::StrCat("Slurm takes no more jobs of this user now: ", words));
  }
  for (const Refusal& refusal : kRefusals) {
    if (has(refusal.words)) return FieldError(refusal.field, absl::StrCat("Slurm refuses the job: ", words));
  }
  return absl::InvalidArgumentError(absl::StrCat("cannot submit the job: Slurm says \"", words, "\""));
}

}  // namespace

absl::Status CheckSlurmRequest(const SlurmRequest& request, bool is_test) {
  FieldViolations violations;
  const std::pair<absl::string_view, const std::string*> texts[] = {{"name", &request.name},
                                                                    {"partition", &request.partition},
                                                                    {"account", &request.account},
                                                                    {"qos", &request.qos}};
  for (const auto& [field, text] : texts) {
    if (!IsArgument(*text)) violations.Add(field, "a NUL is in the text; remove it");
  }
  const bool is_plain = std::all_of(request.comment.begin(), request.comment.end(),
                                    [](char c) { return absl::ascii_isgraph(c) && c != '|'; });
  if (!is_plain || !absl::StartsWith(request.comment, kSlurmCommentPrefix)) {
    violations.Add("comment", absl::StrCat("\"", request.comment, "\" is no tag such as \"",
                                           kSlurmCommentPrefix, "JOB:ATTEMPT\""));
  }
  CheckCount("nodes", request.nodes, 1, violations);
  CheckCount("tasks_per_node", request.tasks_per_node, 1, violations);
  CheckCount("cpus_per_task", request.cpus_per_task, 1, violations);
  CheckCount("gpus_per_node", request.gpus_per_node, 0, violations);
  if (request.time_limit < absl::ZeroDuration()) {
    violations.Add("time_limit",
                   absl::StrCat("\"", absl::FormatDuration(request.time_limit), "\" is negative"));
  }
  for (const std::string& argument : request.extra_arguments) CheckExtraArgument(argument, violations);
  if (!is_test || !request.script_path.empty()) CheckPath("script_path", request.script_path, violations);
  if (!is_test || !request.work_folder.empty()) CheckPath("work_folder", request.work_folder, violations);
  if (!is_test || !request.output_path.empty()) CheckPath("output_path", request.output_path, violations);
  // Slurm would drop backslashes.
  if (absl::StrContains(request.output_path, '\\')) {
    violations.Add("output_path", absl::StrCat("\"", request.output_path,
                                               "\" has a backslash; Slurm cannot write to such a path"));
  }
  return violations.ToStatus();
}

std::vector<std::string> SubmitArguments(const SlurmRequest& request) {
  std::vector<std::string> arguments = CommonArguments(request);
  arguments.push_back("--parsable");
  arguments.push_back(absl::StrCat("--output=", EscapeSlurmPattern(request.output_path)));
  arguments.push_back("--open-mode=append");
  arguments.push_back(request.script_path);
  return arguments;
}

std::vector<std::string> TestArguments(const SlurmRequest& request) {
  std::vector<std::string> arguments = CommonArguments(request);
  arguments.push_back("--test-only");
  // sbatch wants a script, which it does not run.
  arguments.push_back("--wrap=true");
  return arguments;
}

absl::StatusOr<std::string> ReadSubmission(const CommandResult& result) {
  if (result.exit_code != 0) return RefusalOf(result);
  // "123", or "123;CLUSTER" if several clusters share a database.
  const absl::string_view line = absl::StripAsciiWhitespace(result.standard_output);
  const absl::string_view id = line.substr(0, line.find(';'));
  if (id.empty() || !std::all_of(id.begin(), id.end(), absl::ascii_isdigit)) {
    return absl::UnavailableError(
        absl::StrCat("cannot read the answer of sbatch: \"", line.substr(0, 200), "\" is no job id"));
  }
  return std::string(id);
}

absl::Status ReadTest(const CommandResult& result) {
  if (result.exit_code == 0) return absl::OkStatus();
  return RefusalOf(result);
}

}  // namespace tandem
