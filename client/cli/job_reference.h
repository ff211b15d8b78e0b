#ifndef TANDEM_CLIENT_CLI_JOB_REFERENCE_H_
#define TANDEM_CLIENT_CLI_JOB_REFERENCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/lib/client.h"

namespace tandem::cli {

// Returns the job with the name "jobs/ID" or "ID", or the only job whose id begins with `reference`. For
// "BEGINNING@", returns the newest job whose id begins with BEGINNING; for "@", the newest of all jobs.
// INVALID_ARGUMENT if `reference` is no name of a job or begins several ids. NOT_FOUND if it begins none.
// Other errors are the daemon's.
absl::StatusOr<v1::Job> FindJob(client::Client& client, absl::string_view reference);

// As FindJob, for a command that changes the job. INVALID_ARGUMENT for "@": the newest of all jobs may be
// another than the caller thinks of, such as another user's.
absl::StatusOr<v1::Job> FindJobToChange(client::Client& client, absl::string_view reference);

// Returns "ID" for "jobs/ID".
std::string JobId(absl::string_view name);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_JOB_REFERENCE_H_
