#include "server/clusters/slurm_launcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/env.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "server/clusters/slurm/batch_script.h"
#include "server/store/records.h"
#include "server/workers/job_folder.h"

namespace tandem {
namespace {

using State = LaunchedAttempt::State;

State StateOf(const SlurmJob& job) {
  if (IsEnd(job.state)) return State::kEnded;
  return job.state == SlurmState::kPending ? State::kWaiting : State::kRunning;
}

v1::StateReason ReasonOf(SlurmState state) {
  switch (state) {
    case SlurmState::kTimeout:
      return v1::STATE_REASON_CLUSTER_TIME_LIMIT;
    case SlurmState::kPreempted:
      return v1::STATE_REASON_CLUSTER_PREEMPTED;
    case SlurmState::kNodeFail:
      return v1::STATE_REASON_CLUSTER_NODE_FAILED;
    case SlurmState::kOutOfMemory:
      return v1::STATE_REASON_CLUSTER_OUT_OF_MEMORY;
    case SlurmState::kCancelled:
      return v1::STATE_REASON_CLUSTER_CANCELLED;
    default:
      return v1::STATE_REASON_WORKER_LOST;
  }
}

LaunchedAttempt AttemptOf(const SlurmJob& job, AttemptId id) {
  LaunchedAttempt attempt;
  attempt.id = std::move(id);
  attempt.handle = job.id;
  attempt.state = StateOf(job);
  attempt.reason = ReasonOf(job.state);
  attempt.detail = attempt.state == State::kWaiting ? job.reason : job.state_text;
  attempt.start = job.start;
  attempt.nodes = job.nodes;
  return attempt;
}

}  // namespace

std::string SlurmCommentOf(const AttemptId& id) {
  return absl::StrCat(kSlurmCommentPrefix, id.job_id, ":", id.attempt);
}

std::optional<AttemptId> ParseSlurmComment(absl::string_view comment) {
  if (!absl::ConsumePrefix(&comment, kSlurmCommentPrefix)) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(comment, ':');
  AttemptId id;
  if (parts.size() != 2 || parts[0].empty() || !absl::SimpleAtoi(parts[1], &id.attempt) || id.attempt < 1) {
    return std::nullopt;
  }
  id.job_id = std::string(parts[0]);
  return id;
}

SlurmRequest SlurmRequestOf(const v1::JobSpec& spec) {
  const v1::SlurmCluster& slurm = spec.cluster().slurm();
  SlurmRequest request;
  request.name = absl::StrCat("tandem-", spec.name());
  request.partition = slurm.partition();
  request.account = slurm.account();
  request.qos = slurm.qos();
  request.nodes = std::max(1, slurm.nodes());
  request.tasks_per_node = std::max(1, spec.replicas().workers()) / request.nodes;
  request.cpus_per_task = std::max(1, slurm.cpus_per_task());
  request.gpus_per_node = slurm.gpus_per_node();
  request.time_limit = absl::Seconds(slurm.time_limit_seconds());
  request.extra_arguments.assign(slurm.extra_arguments().begin(), slurm.extra_arguments().end());
  return request;
}

absl::StatusOr<LaunchedAttempt> SlurmLauncher::Submit(const LaunchRequest& launch) {
  const v1::Job& job = launch.job;
  const JobFolder folder(job.folder());
  SlurmRequest request = SlurmRequestOf(job.spec());
  LaunchedAttempt attempt;
  attempt.id = {JobId(job.name()), job.attempt()};
  request.name = absl::StrCat("tandem-", attempt.id.job_id);
  request.comment = SlurmCommentOf(attempt.id);
  request.work_folder = folder.AttemptFolder(job.attempt());
  request.script_path = request.work_folder + "/batch.sh";
  request.output_path = request.work_folder + "/batch.log";

  BatchScriptOptions script;
  script.attempt_folder = request.work_folder;
  script.command = launch.command;
  script.environment = launch.environment;
  script.required_paths = launch.required_paths;
  script.nodes = request.nodes;
  script.tasks_per_node = request.tasks_per_node;
  script.cpus_per_task = request.cpus_per_task;
  // LogPath of each worker. The first worker's log has no number.
  script.task_output = folder.path() + "/worker-";
  const std::string text = BatchScript(script);
  TANDEM_RETURN_IF_ERROR(WriteFileAtomically(Env::Real(), request.script_path,
                                             [&](WritableFile& file) { return file.Append(text); }));
  TANDEM_ASSIGN_OR_RETURN(attempt.handle, client_->Submit(request));
  return attempt;
}

absl::StatusOr<std::vector<LaunchedAttempt>> SlurmLauncher::Observe() {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<SlurmJob> jobs, client_->Poll());
  std::vector<LaunchedAttempt> attempts;
  for (const SlurmJob& job : jobs) {
    if (std::optional<AttemptId> id = ParseSlurmComment(job.comment); id.has_value()) {
      attempts.push_back(AttemptOf(job, *std::move(id)));
    }
  }
  return attempts;
}

absl::Status SlurmLauncher::Cancel(const LaunchedAttempt& attempt) {
  // A controller that was killed may give the number of a job that it forgot to another job.
  TANDEM_ASSIGN_OR_RETURN(const std::vector<SlurmJob> jobs, client_->Poll());
  const std::string comment = SlurmCommentOf(attempt.id);
  const bool is_known = std::any_of(jobs.begin(), jobs.end(), [&](const SlurmJob& job) {
    return job.id == attempt.handle && job.comment == comment;
  });
  return is_known ? client_->Cancel(attempt.handle, /*signal_term=*/false) : absl::OkStatus();
}

absl::StatusOr<std::optional<LaunchedAttempt>> SlurmLauncher::TakeOver(const AttemptId& id) {
  TANDEM_ASSIGN_OR_RETURN(const std::optional<SlurmJob> job, client_->Find(SlurmCommentOf(id)));
  if (!job.has_value()) return std::nullopt;
  return AttemptOf(*job, id);
}

absl::Status SlurmLauncher::Test(const v1::JobSpec& spec) {
  SlurmRequest request = SlurmRequestOf(spec);
  request.comment = SlurmCommentOf({"test", 1});
  const absl::Status status = client_->Test(request);
  if (absl::IsUnavailable(status)) {
    return absl::UnavailableError(
        absl::StrCat("cannot check the job: ", status.message(),
                     "; submit the job again when `sinfo` answers on the daemon's machine"));
  }
  if (!absl::IsInvalidArgument(status) || GetFieldViolations(status).empty()) return status;
  FieldViolations violations;
  for (const FieldViolation& violation : GetFieldViolations(status)) {
    const bool is_time = violation.field == "time_limit";
    violations.Add(is_time ? "time_limit_seconds" : violation.field, violation.description);
  }
  return violations.ToStatus();
}

absl::StatusOr<std::vector<v1::ClusterPartition>> SlurmLauncher::Partitions() {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<SlurmPartition> known, client_->Partitions());
  std::vector<v1::ClusterPartition> partitions;
  for (const SlurmPartition& one : known) {
    v1::ClusterPartition& partition = partitions.emplace_back();
    partition.set_name(one.name);
    partition.set_is_default(one.is_default);
    partition.set_is_up(one.is_up && one.down_nodes < one.nodes);
    if (one.time_limit != absl::InfiniteDuration()) {
      partition.set_time_limit_seconds(absl::ToDoubleSeconds(one.time_limit));
    }
    partition.set_nodes(one.nodes);
    partition.set_free_nodes(one.free_nodes);
    partition.set_cpus_per_node(one.cpus_per_node);
    partition.set_gpus_per_node(one.gpus_per_node);
  }
  std::sort(partitions.begin(), partitions.end(),
            [](const auto& a, const auto& b) { return a.name() < b.name(); });
  return partitions;
}

}  // namespace tandem
