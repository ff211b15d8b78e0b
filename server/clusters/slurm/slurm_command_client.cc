#include "server/clusters/slurm/slurm_command_client.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "server/clusters/slurm/queue_answer.h"
#include "server/clusters/slurm/sbatch.h"
#include "server/clusters/slurm/slurm_text.h"

namespace tandem {
namespace {

constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin";
// The bytes of a program's errors that a message quotes.
constexpr size_t kMostQuoted = 500;

SlurmCommandClient::Options WithPath(SlurmCommandClient::Options options) {
  if (!options.path.empty()) return options;
  const char* const path = getenv("PATH");
  options.path = path != nullptr && *path != '\0' ? path : kDefaultPath;
  return options;
}

// Variables such as SBATCH_PARTITION or SQUEUE_FORMAT2 would change the programs' behaviour, and the daemon's
// secrets would reach the job. So only these variables are passed on.
std::vector<std::string> EnvironmentWith(absl::string_view path) {
  // The time zone makes Slurm print UTC.
  std::vector<std::string> environment = {absl::StrCat("PATH=", path), "LC_ALL=C", "TZ=UTC"};
  for (const char* const name :
       {"HOME", "USER", "LOGNAME", "LD_LIBRARY_PATH", "SLURM_CONF", "SLURM_CONF_SERVER"}) {
    if (const char* const value = getenv(name); value != nullptr) {
      environment.push_back(absl::StrCat(name, "=", value));
    }
  }
  return environment;
}

// Returns true if scancel's errors say that there is nothing left to cancel.
bool HasNoJob(absl::string_view errors) {
  const std::string lower = absl::AsciiStrToLower(errors);
  return absl::StrContains(lower, "invalid job id") ||
         absl::StrContains(lower, "already completing or completed");
}

// Returns the request's partition, or nullptr if it is not in the list.
const SlurmPartition* PartitionOf(const SlurmRequest& request,
                                  const std::vector<SlurmPartition>& partitions) {
  for (const SlurmPartition& partition : partitions) {
    if (request.partition.empty() ? partition.is_default : partition.name == request.partition) {
      return &partition;
    }
  }
  return nullptr;
}

// Returns true if Slurm may refuse the nodes only because too few are ready now, as after a restart of the
// controller. Such a job can wait in Slurm's queue.
bool LacksReadyNodes(const absl::Status& refusal, const SlurmRequest& request,
                     const SlurmPartition* partition) {
  const std::vector<FieldViolation> violations = GetFieldViolations(refusal);
  return violations.size() == 1 && violations[0].field == "nodes" && partition != nullptr &&
         request.nodes <= partition->nodes && request.nodes > partition->ready_nodes;
}

std::string CountOf(int64_t count, absl::string_view thing) {
  return absl::StrCat(count, " ", thing, count == 1 ? "" : "s");
}

// Returns "2 nodes with 4 cores and 1 GPU each".
std::string DescribeRequest(int nodes, int64_t cores, int gpus) {
  return absl::StrCat(CountOf(nodes, "node"), " with ", CountOf(cores, "core"), " and ", CountOf(gpus, "GPU"),
                      nodes == 1 ? "" : " each");
}

// Returns "2 nodes with 4 cores and up to 1 GPU each" if only the GPUs of the nodes differ.
std::string DescribeNodes(const SlurmPartition& partition) {
  const auto up_to = [](int least, int most, absl::string_view thing) {
    return absl::StrCat(least == most ? "" : "up to ", CountOf(most, thing));
  };
  return absl::StrCat(CountOf(partition.nodes, "node"), " with ",
                      up_to(partition.cpus_per_node, partition.most_cpus_per_node, "core"), " and ",
                      up_to(partition.gpus_per_node, partition.most_gpus_per_node, "GPU"),
                      partition.nodes == 1 ? "" : " each");
}

// Returns 'the partitions are "work", "urgent"'.
std::string DescribePartitions(const std::vector<SlurmPartition>& partitions) {
  return absl::StrCat("the partitions are ",
                      absl::StrJoin(partitions, ", ", [](std::string* out, const SlurmPartition& partition) {
                        absl::StrAppend(out, "\"", partition.name, "\"");
                      }));
}

// Slurm has the same words for too many nodes, cores and GPUs. Returns the refusal of these with the numbers
// and the right field, the refusal of an unknown partition with the known partitions, and any other refusal
// as it is.
absl::Status ExplainRefusal(const absl::Status& refusal, const SlurmRequest& request,
                            const std::vector<SlurmPartition>& partitions, const SlurmPartition* partition) {
  const std::vector<FieldViolation> violations = GetFieldViolations(refusal);
  if (violations.size() != 1) return refusal;
  std::string field = violations[0].field;
  if (partition == nullptr) {
    if (field != "partition" || partitions.empty()) return refusal;
    return FieldError(field, absl::StrCat(violations[0].description, "; ", DescribePartitions(partitions)));
  }
  if (field != "nodes" && field != "cpus_per_task" && field != "gpus_per_node") return refusal;
  const int64_t cores = int64_t{request.tasks_per_node} * request.cpus_per_task;
  if (request.nodes > partition->nodes) {
    field = "nodes";
  } else if (request.gpus_per_node > partition->most_gpus_per_node) {
    field = "gpus_per_node";
  } else if (cores > partition->most_cpus_per_node) {
    field = "cpus_per_task";
  }
  std::string asked = DescribeRequest(request.nodes, cores, request.gpus_per_node);
  for (const std::string& argument : request.extra_arguments) absl::StrAppend(&asked, ", ", argument);
  return FieldError(
      field,
      absl::StrCat(violations[0].description, "; the job asks for ", asked, ", and the partition \"",
                   partition->name, "\" has ", DescribeNodes(*partition),
                   // Without a number of nodes, each replica has a node.
                   field == "nodes"
                       ? "; ask for less: set nodes, or lower replicas.count; or name another partition"
                       : "; ask for less or name another partition"));
}

// The order of Find: a job that has not ended, then the lower id.
std::tuple<bool, size_t, absl::string_view> RankOf(const SlurmJob& job) {
  return {IsEnd(job.state), job.id.size(), job.id};
}

}  // namespace

SlurmCommandClient::SlurmCommandClient(Options options)
    : options_(WithPath(std::move(options))), environment_(EnvironmentWith(options_.path)) {}

absl::StatusOr<CommandResult> SlurmCommandClient::Run(const char* program,
                                                      std::vector<std::string> arguments) const {
  Command command;
  command.program = program;
  command.arguments = std::move(arguments);
  command.environment = environment_;
  command.path = options_.path;
  command.time_limit = options_.time_limit;
  absl::StatusOr<CommandResult> result = RunCommand(command);
  if (result.ok()) return result;
  if (absl::IsNotFound(result.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        result.status().message(),
        "; install Slurm's programs (Debian: slurm-client), or start the daemon with their folder in "
        "PATH"));
  }
  return absl::UnavailableError(absl::StrCat("cannot reach Slurm: ", result.status().message()));
}

absl::StatusOr<std::string> SlurmCommandClient::Ask(const char* program,
                                                    std::vector<std::string> arguments) const {
  TANDEM_ASSIGN_OR_RETURN(CommandResult result, Run(program, std::move(arguments)));
  if (result.exit_code == 0) return std::move(result.standard_output);
  const absl::string_view errors = absl::StripAsciiWhitespace(result.standard_error);
  return absl::UnavailableError(absl::StrCat("cannot reach Slurm: ", program, " ended with code ",
                                             result.exit_code, ": \"", errors.substr(0, kMostQuoted), "\""));
}

absl::Status SlurmCommandClient::CheckInstalled() const {
  for (const char* const program : {"sbatch", "squeue", "scancel", "sinfo"}) {
    const absl::Status status = Run(program, {"--version"}).status();
    if (absl::IsFailedPrecondition(status)) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> SlurmCommandClient::Submit(const SlurmRequest& request) {
  TANDEM_RETURN_IF_ERROR(CheckSlurmRequest(request, /*is_test=*/false));
  TANDEM_ASSIGN_OR_RETURN(const CommandResult result, Run("sbatch", SubmitArguments(request)));
  return ReadSubmission(result);
}

absl::Status SlurmCommandClient::Test(const SlurmRequest& request) {
  TANDEM_RETURN_IF_ERROR(CheckSlurmRequest(request, /*is_test=*/true));
  TANDEM_ASSIGN_OR_RETURN(const CommandResult result, Run("sbatch", TestArguments(request)));
  absl::Status refusal = ReadTest(result);
  // The job can wait until Slurm takes it.
  if (absl::IsAborted(refusal)) refusal = absl::OkStatus();
  if (!refusal.ok() && !absl::IsInvalidArgument(refusal)) return refusal;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<SlurmPartition> partitions, Partitions());
  const SlurmPartition* const partition = PartitionOf(request, partitions);
  if (!refusal.ok() && !LacksReadyNodes(refusal, request, partition)) {
    return ExplainRefusal(refusal, request, partitions, partition);
  }
  // Unless EnforcePartLimits is set, Slurm takes a job with a longer limit than the partition's, and never
  // starts this job. A quality of service may lift the partition's limit.
  if (partition == nullptr || !request.qos.empty() || request.time_limit <= partition->time_limit) {
    return absl::OkStatus();
  }
  return FieldError(
      "time_limit",
      absl::StrCat(FormatSlurmDuration(request.time_limit), " is longer than the limit of the partition \"",
                   partition->name, "\", ", FormatSlurmDuration(partition->time_limit),
                   "; ask for less time or another partition"));
}

absl::StatusOr<std::vector<SlurmJob>> SlurmCommandClient::Poll() {
  // The header, which -h would drop, shows that squeue has an answer.
  TANDEM_ASSIGN_OR_RETURN(const std::string output, Ask("squeue", {absl::StrCat("--user=", getuid()),
                                                                   "--states=all", "-o", kQueueFormat}));
  return ParseQueue(output);
}

absl::StatusOr<std::optional<SlurmJob>> SlurmCommandClient::Find(absl::string_view comment) {
  TANDEM_ASSIGN_OR_RETURN(std::vector<SlurmJob> jobs, Poll());
  std::erase_if(jobs, [&](const SlurmJob& job) { return job.comment != comment; });
  if (jobs.empty()) return std::nullopt;
  return *std::min_element(jobs.begin(), jobs.end(),
                           [](const SlurmJob& a, const SlurmJob& b) { return RankOf(a) < RankOf(b); });
}

absl::Status SlurmCommandClient::Cancel(absl::string_view id, bool signal_term) {
  if (id.empty() || !std::all_of(id.begin(), id.end(), absl::ascii_isdigit)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot cancel the job \"", id, "\": the id is no number"));
  }
  std::vector<std::string> arguments;
  // Without a state, scancel would try for half a minute to signal a pending job.
  if (signal_term) arguments = {"--state=RUNNING", "--batch", "--signal=TERM"};
  arguments.emplace_back(id);
  TANDEM_ASSIGN_OR_RETURN(const CommandResult result, Run("scancel", std::move(arguments)));
  if (result.exit_code == 0 || HasNoJob(result.standard_error)) return absl::OkStatus();
  const absl::string_view errors = absl::StripAsciiWhitespace(result.standard_error);
  return absl::UnavailableError(absl::StrCat("cannot cancel the job ", id, ": scancel ended with code ",
                                             result.exit_code, ": \"", errors.substr(0, kMostQuoted), "\""));
}

absl::StatusOr<std::vector<SlurmPartition>> SlurmCommandClient::Partitions() {
  TANDEM_ASSIGN_OR_RETURN(const std::string output, Ask("sinfo", {"-h", "--exact", "-o", kPartitionFormat}));
  return ParsePartitions(output);
}

}  // namespace tandem
