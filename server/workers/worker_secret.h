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

// That of a run which an earlier daemon may have started. Empty: it was started without one, as workers of
// versions before there were any; or not at all. Where what it was started with cannot be read, one that
// nobody knows.
std::string WorkerSecretOf(const JobFolder& folder, int attempt);

// Whether the worker that shows `shown` is the one with `secret`; any is where that is empty. The time that
// it takes tells nothing of it.
bool IsWorkerSecret(absl::string_view shown, absl::string_view secret);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_SECRET_H_
