#ifndef TANDEM_SERVER_WORKERS_LAUNCH_FILE_H_
#define TANDEM_SERVER_WORKERS_LAUNCH_FILE_H_

#include "absl/status/statusor.h"
#include "server/workers/job_folder.h"
#include "tandem/internal/v1/worker.pb.h"

namespace tandem {

// Returns the launch of a job's attempt, from its file. Ignores fields of a later version. The worker may
// write to the file, so the content is untrusted. NOT_FOUND: no such file. DATA_LOSS: it is no regular file,
// is too large, or does not parse. Other errors are those of reading.
absl::StatusOr<internal::v1::WorkerLaunch> ReadLaunchFile(const JobFolder& folder, int attempt);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_LAUNCH_FILE_H_
