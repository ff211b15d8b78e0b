#ifndef TANDEM_SERVER_WORKERS_LAUNCH_FILE_H_
#define TANDEM_SERVER_WORKERS_LAUNCH_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/workers/job_folder.h"
#include "tandem/internal/v1/worker.pb.h"

namespace tandem {

// Returns the launch of a job's attempt, from its file. Ignores fields of a later version. The worker may
// write to the file, so the content is untrusted. NOT_FOUND: no such file. DATA_LOSS: it is no regular file,
// is too large, or does not parse. Other errors are those of reading.
absl::StatusOr<internal::v1::WorkerLaunch> ReadLaunchFile(const JobFolder& folder, int attempt);

// Writes the launch of a worker into its attempt's folder. Only the owner may read the file, because the
// launch has the attempt's secret. Returns the file's path.
absl::StatusOr<std::string> WriteLaunchFile(const JobFolder& folder,
                                            const internal::v1::WorkerLaunch& launch);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_LAUNCH_FILE_H_
