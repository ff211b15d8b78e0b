#ifndef TANDEM_SERVER_DAEMON_RESTORATION_H_
#define TANDEM_SERVER_DAEMON_RESTORATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/daemon/options.h"
#include "server/jobs/job_machine.h"
#include "server/store/recovery.h"
#include "tandem/v1/dataset_service.pb.h"

namespace tandem {

// By the attempts' folders in a job's folder, which stay there.
NewestAttempt NewestAttemptIn(const std::string& jobs_folder);

// Puts DaemonOptions::restore_backup, a file or a backup's id, in the place of the database of the state
// folder, which no daemon holds. What was done, in sentences for people. NOT_FOUND: there is no such file;
// others: as StateFolder::Lock and RestoreDatabase.
absl::StatusOr<std::string> RestoreAsAsked(const DaemonOptions& options);

// Says what was lost: to the log, with the folders of jobs and the uploads that the restored database does
// not know, which stay; and to jobs that have not ended.
void TellOfRestoration(const Restoration& restoration, const std::string& jobs_folder,
                       const std::vector<v1::Upload>& uploads, JobMachine* jobs);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_RESTORATION_H_
