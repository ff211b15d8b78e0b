#include "server/clusters/slurm/slurm_state.h"

namespace tandem {
namespace {

struct StateRow {
  absl::string_view name;
  SlurmState state;
};

// The first row of a state has the state's own name.
constexpr StateRow kStates[] = {
    {"PENDING", SlurmState::kPending},        {"CONFIGURING", SlurmState::kPending},
    {"REQUEUED", SlurmState::kPending},       {"REQUEUE_FED", SlurmState::kPending},
    {"REQUEUE_HOLD", SlurmState::kPending},   {"RESV_DEL_HOLD", SlurmState::kPending},
    {"SPECIAL_EXIT", SlurmState::kPending},   {"RUNNING", SlurmState::kRunning},
    {"RESIZING", SlurmState::kRunning},       {"SIGNALING", SlurmState::kRunning},
    {"COMPLETING", SlurmState::kCompleting},  {"STAGE_OUT", SlurmState::kCompleting},
    {"COMPLETED", SlurmState::kCompleted},    {"FAILED", SlurmState::kFailed},
    {"LAUNCH_FAILED", SlurmState::kFailed},   {"CANCELLED", SlurmState::kCancelled},
    {"REVOKED", SlurmState::kCancelled},      {"TIMEOUT", SlurmState::kTimeout},
    {"DEADLINE", SlurmState::kTimeout},       {"PREEMPTED", SlurmState::kPreempted},
    {"NODE_FAIL", SlurmState::kNodeFail},     {"BOOT_FAIL", SlurmState::kNodeFail},
    {"RECONFIG_FAIL", SlurmState::kNodeFail}, {"OUT_OF_MEMORY", SlurmState::kOutOfMemory},
    {"SUSPENDED", SlurmState::kSuspended},    {"STOPPED", SlurmState::kSuspended},
};

}  // namespace

SlurmState ParseSlurmState(absl::string_view name) {
  for (const StateRow& row : kStates) {
    if (row.name == name) return row.state;
  }
  return SlurmState::kUnknown;
}

absl::string_view SlurmStateName(SlurmState state) {
  for (const StateRow& row : kStates) {
    if (row.state == state) return row.name;
  }
  return "UNKNOWN";
}

bool IsEnd(SlurmState state) {
  switch (state) {
    case SlurmState::kCompleted:
    case SlurmState::kFailed:
    case SlurmState::kCancelled:
    case SlurmState::kTimeout:
    case SlurmState::kPreempted:
    case SlurmState::kNodeFail:
    case SlurmState::kOutOfMemory:
      return true;
    case SlurmState::kPending:
    case SlurmState::kRunning:
    case SlurmState::kCompleting:
    case SlurmState::kSuspended:
    case SlurmState::kUnknown:
      return false;
  }
  return false;
}

}  // namespace tandem
