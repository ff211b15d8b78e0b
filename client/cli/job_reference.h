#ifndef TANDEM_CLIENT_CLI_JOB_REFERENCE_H_
#define TANDEM_CLIENT_CLI_JOB_REFERENCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/lib/client.h"

namespace tandem::cli {

// The job that a person means by "jobs/ID", "ID" or the beginning of exactly one job's ID. INVALID_ARGUMENT:
// no name of a job, or the beginning of several; NOT_FOUND: of none; else the daemon's errors.
absl::StatusOr<v1::Job> FindJob(client::Client& client, absl::string_view reference);

// "jobs/ID" as "ID".
std::string JobId(absl::string_view name);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_JOB_REFERENCE_H_
