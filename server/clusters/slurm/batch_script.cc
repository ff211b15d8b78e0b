#include "server/clusters/slurm/batch_script.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/base/command.h"

namespace tandem {
namespace {

// Names between "@" stand for values.
constexpr char kScript[] = R"script(#!/bin/bash
# Tandem made this script. It runs one attempt of a job.
attempt=@ATTEMPT@
node=${SLURMD_NODENAME:-$(uname -n)}
if [[ ! -d $attempt ]]; then
  echo "cannot start on node $node: $attempt is missing; every node needs this path" >&2
  exit @PATH_MISSING@
fi

# With noclobber, bash creates the file exclusively. So the attempt runs once, even if Slurm starts the script twice.
set -o noclobber
if ! { echo "$SLURM_JOB_ID $node" >"$attempt/started"; } 2>/dev/null; then
  if [[ ! -e $attempt/started ]]; then
    echo "cannot start on node $node: $attempt/started cannot be written" >&2
    exit @PATH_MISSING@
  fi
  echo "job $SLURM_JOB_ID does nothing on node $node: the attempt was started before, by job and node $(<"$attempt/started")" >&2
  exit @SECOND_RUN@
fi
set +o noclobber
@EXPORTS@
# The first SIGUSR1 and the first SIGTERM are sent on to all tasks. If the step has not begun, the signal is sent again
# until it arrives.
step=
signal=
terminated=
forward() {
  signal=$1
  [[ $1 != TERM ]] || terminated=1
  [[ -n $step ]] || return
  trap '' "$1"
  until scancel --signal="$1" "$SLURM_JOB_ID.0" 2>/dev/null || ! kill -0 "$step" 2>/dev/null; do sleep 0.5; done
}
trap 'forward USR1' USR1
trap 'forward TERM' TERM
srun @SRUN@ @TASK@ &
step=$!
[[ -z $signal ]] || forward "$signal"
wait "$step"
code=$?
# Each of the two signals interrupts `wait`, which then returns another code.
for again in 1 2; do
  [[ -n $signal ]] || break
  wait "$step"
  next=$?
  ((next == 127)) || code=$next
done
echo "$code${terminated:+ SIGTERM}" >"$attempt/ended.new" && mv "$attempt/ended.new" "$attempt/ended"
exit "$code"
)script";

// Returns shell code that runs a task. The code ends if a path is missing on the task's node, or if the log
// cannot be written. Otherwise the code opens the task's log and becomes the command. srun would open the log
// first, and would hang if the log's folder is missing. If a task fails, srun ends the step and may lose
// output that is on its way: so the task waits a second between its message and its end.
std::string TaskCode(const BatchScriptOptions& options) {
  std::string code = absl::StrCat(
      "fail() {\n  message=\"cannot start on node ${SLURMD_NODENAME:-$(uname -n)}: $1\"\n"
      "  echo \"$message\" >&2\n  { echo \"$message\" >>",
      ShellQuote(options.attempt_folder), "/missing; } 2>/dev/null\n  sleep 1\n  exit ",
      static_cast<int>(kBatchPathMissing), "\n}\nfor path in ", ShellQuote(options.attempt_folder));
  for (const std::string& path : options.required_paths) absl::StrAppend(&code, " ", ShellQuote(path));
  absl::StrAppend(
      &code, "; do\n  [ -e \"$path\" ] || fail \"$path is missing; every node needs this path\"\ndone\n");
  if (!options.task_output.empty()) {
    // A shell ends at once if `exec` cannot open a file.
    absl::StrAppend(&code, "log=", ShellQuote(options.task_output),
                    "\"$SLURM_PROCID\".log\n{ true >>\"$log\"; } 2>/dev/null ||"
                    " fail \"$log cannot be written; every node must be able to write there\"\n"
                    "exec >>\"$log\" 2>&1\n");
  }
  return absl::StrCat(code, "exec \"$@\"");
}

std::string SrunOptions(const BatchScriptOptions& options) {
  // A task that ends early must not end the others, unless it fails: --wait=0 and --kill-on-bad-exit. Since
  // Slurm 22.05, srun does not take --cpus-per-task from sbatch.
  return absl::StrCat("--nodes=", options.nodes, " --ntasks-per-node=", options.tasks_per_node,
                      " --cpus-per-task=", options.cpus_per_task,
                      " --kill-on-bad-exit=1 --wait=0 --mpi=none --input=none --export=ALL");
}

}  // namespace

std::string BatchScript(const BatchScriptOptions& options) {
  std::string exports;
  for (const auto& [name, value] : options.environment) {
    absl::StrAppend(&exports, "export ", name, "=", ShellQuote(value), "\n");
  }
  std::string task = absl::StrCat("/bin/sh -c ", ShellQuote(TaskCode(options)), " tandem-task");
  for (const std::string& word : options.command) absl::StrAppend(&task, " ", ShellQuote(word));
  // StrReplaceAll replaces each name once: a value that has such a name stays as it is.
  return absl::StrReplaceAll(kScript, {{"@ATTEMPT@", ShellQuote(options.attempt_folder)},
                                       {"@PATH_MISSING@", absl::StrCat(static_cast<int>(kBatchPathMissing))},
                                       {"@SECOND_RUN@", absl::StrCat(static_cast<int>(kBatchSecondRun))},
                                       {"@EXPORTS@", exports},
                                       {"@SRUN@", SrunOptions(options)},
                                       {"@TASK@", task}});
}

}  // namespace tandem
