#ifndef TANDEM_CLIENT_CLI_EXIT_CODE_H_
#define TANDEM_CLIENT_CLI_EXIT_CODE_H_

#include "absl/status/status.h"
#include "tandem/v1/event.pb.h"

namespace tandem::cli {

// The program's exit codes, for scripts.
enum ExitCode : int {
  // The job succeeded, or the command did its work.
  kSucceeded = 0,
  // The job failed.
  kJobFailed = 1,
  // Wrong usage, an invalid job, or a refusal by the daemon, for example of a damaged file.
  kBadUsage = 2,
  // The job was cancelled.
  kCancelled = 3,
  // The daemon could not be reached, or the connection broke for good.
  kNoDaemon = 4,
  // The command did its work, but standard output did not take all of its output, or a file could not be
  // written.
  kOutputLost = 5,
  // Ctrl-C ended the command, and the job continues. Shells use this code for an end by SIGINT.
  kDetached = 130,
};

// Returns the exit code of a call's status.
inline ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kSucceeded;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kUnimplemented:
      return kNoDaemon;
    default:
      return kBadUsage;
  }
}

// Returns the exit code of a job's terminal state.
inline ExitCode ExitCodeOf(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_FAILED:
      return kJobFailed;
    case v1::JOB_STATE_CANCELLED:
      return kCancelled;
    default:
      return kSucceeded;
  }
}

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_EXIT_CODE_H_
