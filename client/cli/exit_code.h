#ifndef TANDEM_CLIENT_CLI_EXIT_CODE_H_
#define TANDEM_CLIENT_CLI_EXIT_CODE_H_

#include "absl/status/status.h"
#include "tandem/v1/event.pb.h"

namespace tandem::cli {

// What the command ends with, for scripts.
enum ExitCode : int {
  // The job succeeded, or what was asked for is done.
  kSucceeded = 0,
  // The job failed.
  kJobFailed = 1,
  // Bad usage, an invalid job, or something that the daemon refused, as a damaged file.
  kBadUsage = 2,
  // The job was cancelled.
  kCancelled = 3,
  // The daemon could not be reached, or was lost.
  kNoDaemon = 4,
  // Standard output did not take all that there was to say, though what was asked for is done.
  // Or a file could not be written.
  kOutputLost = 5,
  // Ctrl-C left a job that goes on, as shells name an end by SIGINT: neither success nor failure.
  kDetached = 130,
};

// For an error of a call.
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

// For a job's terminal state.
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
