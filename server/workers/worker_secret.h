#ifndef TANDEM_SERVER_WORKERS_WORKER_SECRET_H_
#define TANDEM_SERVER_WORKERS_WORKER_SECRET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/workers/job_folder.h"

namespace tandem {

// The secret that a worker shows to prove its attempt (WorkerLaunch.secret). The job's folder has it, and no
// other job's worker may read that folder.

// Returns a new secret: 32 random bytes in hexadecimal. INTERNAL: the system provides no random bytes.
absl::StatusOr<std::string> MakeWorkerSecret();

// Returns the secret of an attempt that an earlier daemon may have started, from its launch file. Empty if
// the attempt was not started or the file cannot be read.
std::string WorkerSecretOf(const JobFolder& folder, int attempt);

// Returns true if `shown` equals `secret`. Always false if `secret` is empty. The time reveals nothing about
// the secret.
bool IsWorkerSecret(absl::string_view shown, absl::string_view secret);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_SECRET_H_
