#ifndef TANDEM_SERVER_CLUSTERS_SLURM_SLURM_STATE_H_
#define TANDEM_SERVER_CLUSTERS_SLURM_SLURM_STATE_H_

#include "absl/strings/string_view.h"

namespace tandem {

// The state of a job in Slurm. Rare states of Slurm are mapped to the nearest of these.
enum class SlurmState {
  // The job waits, or its nodes are being started.
  kPending,
  kRunning,
  // The job's processes are ending. Slurm still has an end state to report.
  kCompleting,
  // The batch script exited with 0.
  kCompleted,
  // The batch script exited with another code, or Slurm could not start it.
  kFailed,
  // A person or program cancelled the job.
  kCancelled,
  // The job reached its time limit or deadline.
  kTimeout,
  // A job of higher priority took the nodes.
  kPreempted,
  // A node failed or could not be started.
  kNodeFail,
  // The kernel ended a process of the job because its memory limit was reached.
  kOutOfMemory,
  kSuspended,
  // A state that this version does not know. Never an end.
  kUnknown,
};

// Returns the state with Slurm's name, such as "NODE_FAIL". kUnknown if the name is not known.
SlurmState ParseSlurmState(absl::string_view name);

// Returns Slurm's name of the state, such as "NODE_FAIL"; "UNKNOWN" for kUnknown.
absl::string_view SlurmStateName(SlurmState state);

// Returns true if a job never leaves this state.
bool IsEnd(SlurmState state);

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SLURM_SLURM_STATE_H_
