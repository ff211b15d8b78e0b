#include "server/clusters/cluster_run.h"

#include <unistd.h>

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/clusters/attempt_files.h"
#include "server/clusters/slurm/batch_script.h"
#include "server/store/timestamps.h"
#include "server/workers/exit_codes.h"
#include "server/workers/untrusted_file.h"
#include "server/workers/worker_log.h"

namespace tandem {
namespace {

// Slurm's start of an attempt is in whole seconds, and the nodes' clocks differ a little.
constexpr absl::Duration kClockDifference = absl::Seconds(2);
// The bytes of the batch script's output that are searched.
constexpr size_t kMostOutput = 1 << 20;

// Returns whether a person cancelled a run that its launcher calls cancelled. Slurm itself cancels a job that
// it cannot launch. A killed controller may forget that it started a job, start the job again, and cancel the
// job because the node still has it.
bool WasCancelledByAPerson(const ClusterRun& run) {
  const std::optional<absl::Time> start = StartOfAttempt(run.folder, run.attempt);
  // A job that was cancelled in the queue has no nodes.
  if (!start.has_value()) return run.seen->nodes.empty();
  const std::optional<AttemptEnd> end = EndOfAttempt(run.folder, run.attempt);
  if (end.has_value() && !end->was_terminated) return false;
  return !run.seen->start.has_value() || *run.seen->start <= *start + kClockDifference;
}

// Returns "10.0.0.1:7448" for gRPC's target "ipv4:10.0.0.1:7448".
absl::string_view AddressOf(absl::string_view target) {
  return absl::StripPrefix(absl::StripPrefix(target, "ipv4:"), "ipv6:");
}

// Returns the line in which a task names a path that its node lacks, or "". See BatchScriptOptions.
std::string MissingPath(const std::string& attempt_folder) {
  if (std::string line = LastLogLine(attempt_folder + "/missing"); !line.empty()) return line;
  const std::string output = ReadUntrustedTail(attempt_folder + "/batch.log", kMostOutput).value_or("");
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    if (absl::StartsWith(line, "cannot start on node ")) return std::string(line);
  }
  return "";
}

}  // namespace

AttemptLoss DescribeLoss(const ClusterRun& run, const std::string& launcher_name,
                         absl::Duration absence_limit) {
  AttemptLoss loss;
  if (!run.refusal.ok()) {
    loss.reason = v1::STATE_REASON_WORKER_START_FAILED;
    loss.message = absl::StrCat("The job could not be given to ", launcher_name, ": ", run.refusal.message());
    return loss;
  }
  if (!run.seen.has_value() && !run.is_adopted && !run.is_lost) {
    loss.message = absl::StrCat("It was not yet submitted to ", launcher_name, ".");
    return loss;
  }
  const std::string who = run.seen.has_value() ? absl::StrCat(launcher_name, " job ", run.seen->handle)
                                               : absl::StrCat("Its attempt in ", launcher_name);
  if (run.is_lost) {
    const bool is_in_queue = run.seen.has_value() && run.seen->state == LaunchedAttempt::State::kWaiting;
    loss.message = absl::StrCat(
        who, is_in_queue ? " began, but now waits in or is unknown to " : " is unknown to ", launcher_name,
        ", and its workers were silent, for more than ", absl::FormatDuration(absence_limit), ".");
    return loss;
  }
  if (run.seen.has_value() && run.seen->state == LaunchedAttempt::State::kEnded)
    loss.reason = run.seen->reason;
  const bool was_cancelled = loss.reason == v1::STATE_REASON_CLUSTER_CANCELLED;
  if (was_cancelled && !WasCancelledByAPerson(run)) loss.reason = v1::STATE_REASON_WORKER_LOST;
  const std::string detail = run.seen.has_value() ? run.seen->detail : "";
  loss.message = absl::StrCat(who, " ended", detail.empty() ? "" : ": ", detail, ".");
  if (loss.reason == v1::STATE_REASON_CLUSTER_CANCELLED) {
    const bool has_started = StartOfAttempt(run.folder, run.attempt).has_value();
    loss.message = absl::StrCat(who, " was cancelled ", has_started ? "while it ran" : "before it started",
                                run.was_stopping ? "." : ", and not through the daemon.");
  }
  // The reasons of the cluster itself explain enough.
  if (loss.reason != v1::STATE_REASON_WORKER_LOST) return loss;
  const std::string attempt_folder = run.folder.AttemptFolder(run.attempt);
  const std::string output = attempt_folder + "/batch.log";
  if (const std::string missing = MissingPath(attempt_folder); !missing.empty()) {
    loss.reason = v1::STATE_REASON_WORKER_START_FAILED;
    loss.message = absl::StrCat(who, ": ", missing, ".");
    return loss;
  }
  if (run.seen.has_value() && !was_cancelled && !run.seen->nodes.empty() &&
      !StartOfAttempt(run.folder, run.attempt).has_value() && access(output.c_str(), F_OK) != 0) {
    loss.reason = v1::STATE_REASON_WORKER_START_FAILED;
    loss.message = absl::StrCat(who, " cannot start on node ", run.seen->nodes.front(), ": it cannot write ",
                                output, "; every node needs the folder ", attempt_folder);
    return loss;
  }
  if (const std::optional<AttemptEnd> end = EndOfAttempt(run.folder, run.attempt); end.has_value()) {
    const int code = end->exit_code;
    if (code == kBatchPathMissing || code == kWorkerBadLaunch) {
      loss.reason = v1::STATE_REASON_WORKER_START_FAILED;
    }
    loss.message = absl::StrCat(who, code == 0 ? " ended without saying how training ended."
                                               : absl::StrCat(" ended with the exit code ", code, "."));
  }
  // The worker that failed logs an error last. Slurm ends the others in the middle of their work.
  std::string first;
  for (int worker = 0; worker < run.workers; ++worker) {
    const std::string line = LastLogLine(absl::StrCat(run.folder.path(), "/worker-", worker, ".log"));
    if (line.empty() || absl::StartsWith(line, "srun: ") || absl::StartsWith(line, "slurmstepd: ")) continue;
    const std::string text = absl::StrCat(" The last line of the log of worker ", worker, ": ", line);
    if (first.empty() || absl::StrContains(line, " error ") || absl::StartsWith(line, "cannot "))
      first = text;
  }
  if (!first.empty()) {
    absl::StrAppend(&loss.message, first);
    return loss;
  }
  const std::string line = LastLogLine(output);
  if (!line.empty()) absl::StrAppend(&loss.message, " The last line of the batch script's output: ", line);
  return loss;
}

std::optional<v1::Waiting> DescribeWaiting(const ClusterRun& run, const std::string& launcher_name,
                                           const std::string& away) {
  if (run.state == v1::JOB_STATE_RUNNING) return std::nullopt;
  v1::Waiting waiting;
  waiting.set_reason(v1::Waiting::REASON_CLUSTER);
  if (run.is_stopping()) {
    if (away.empty() || run.phase == ClusterRun::Phase::kEnded) return std::nullopt;
    waiting.set_message(
        absl::StrCat(away, " The stop continues by itself when ", launcher_name, " answers."));
    return waiting;
  }
  if (run.waits_in_queue()) {
    waiting.set_message(absl::StrCat(launcher_name, " job ", run.seen->handle, " waits in its queue",
                                     run.seen->detail.empty() ? "" : ": ", run.seen->detail, "."));
    if (run.seen->start.has_value()) {
      *waiting.mutable_estimated_start_time() = TimestampOf(*run.seen->start);
    }
  } else if (run.session == nullptr &&
             (run.phase == ClusterRun::Phase::kSubmit || run.phase == ClusterRun::Phase::kFind)) {
    waiting.set_message(absl::StrCat(
        "The daemon ", run.is_adopted ? "looks for it in " : "submits it to ", launcher_name,
        run.refusal.ok() ? "." : " again and again: ", run.refusal.message(), run.refusal.ok() ? "" : "."));
  } else if (run.phase == ClusterRun::Phase::kWatched && run.seen.has_value() && !run.seen->nodes.empty()) {
    waiting.set_message(absl::StrCat(launcher_name, " job ", run.seen->handle, " runs on ",
                                     absl::StrJoin(run.seen->nodes, ", "),
                                     run.session == nullptr ? "; its first worker has not reported yet."
                                                            : "; its training has not begun yet."));
  } else {
    return std::nullopt;
  }
  if (!away.empty()) absl::StrAppend(waiting.mutable_message(), " ", away);
  return waiting;
}

std::string DescribeSilence(const ClusterRun& run, const std::string& launcher_name, absl::Duration limit,
                            const std::string& daemon_target) {
  const bool has_node = !run.seen->nodes.empty();
  return absl::StrCat("The worker of ", launcher_name, " job ", run.seen->handle, " has not connected ",
                      absl::FormatDuration(limit), " after its start: its node",
                      has_node ? absl::StrCat(" ", run.seen->nodes.front()) : "",
                      " may not reach the daemon at ", AddressOf(daemon_target),
                      " (--worker-listen). The worker's log says more: tandem logs ", run.job_id);
}

}  // namespace tandem
