#ifndef TANDEM_SERVER_WORKERS_LAUNCH_FILE_H_
#define TANDEM_SERVER_WORKERS_LAUNCH_FILE_H_

#include "absl/status/statusor.h"
#include "server/workers/job_folder.h"
#include "tandem/internal/v1/worker.pb.h"

namespace tandem {

// What the daemon told a job's worker when it started its attempt, as the file says; fields of a later
// version are left out. The worker may write to that file, so that it may be anything by now. NOT_FOUND:
// there is none; DATA_LOSS: it is no regular file, larger than a launch may be, or does not parse; or as
// reading fails.
absl::StatusOr<internal::v1::WorkerLaunch> ReadLaunchFile(const JobFolder& folder, int attempt);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_LAUNCH_FILE_H_
