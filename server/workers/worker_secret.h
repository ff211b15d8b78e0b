#ifndef TANDEM_SERVER_WORKERS_WORKER_SECRET_H_
#define TANDEM_SERVER_WORKERS_WORKER_SECRET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/workers/job_folder.h"

namespace tandem {

// What a run of a worker says to be believed that it is that run (WorkerLaunch.secret). It stands in the
// job's folder, which no other job's worker may read.

// A new one: 32 random bytes in hexadecimal digits. INTERNAL: the system gives none.
absl::StatusOr<std::string> MakeWorkerSecret();

// The secret of a run that an earlier daemon may have started, as its launch file says. Empty if the run was
// not started, or if the file cannot be read.
std::string WorkerSecretOf(const JobFolder& folder, int attempt);

// Whether the worker that shows `shown` is the one with `secret`; none is where that is empty. The time that
// it takes tells nothing of it.
bool IsWorkerSecret(absl::string_view shown, absl::string_view secret);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_SECRET_H_
