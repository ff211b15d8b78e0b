#ifndef TANDEM_SERVER_DAEMON_RESTORATION_H_
#define TANDEM_SERVER_DAEMON_RESTORATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/daemon/options.h"
#include "server/jobs/job_machine.h"
#include "server/store/recovery.h"
#include "server/store/store.h"
#include "tandem/v1/dataset_service.pb.h"

namespace tandem {

// Finds a job's newest attempt by the attempts' folders in its folder. The folders survive a restoration.
NewestAttempt NewestAttemptIn(const std::string& jobs_folder);

// Replaces the state folder's database by DaemonOptions::restore_backup, a file or a backup's id. No daemon
// may hold the state folder. Returns sentences for people about the result. NOT_FOUND: no such file. Other
// errors as StateFolder::Lock and RestoreDatabase.
absl::StatusOr<std::string> RestoreAsAsked(const DaemonOptions& options);

// Reports a restoration's losses once. The log names the jobs' folders and the uploads that the restored
// database does not know; these stay. Each job that has not ended gets a notice in its event log. Then writes
// beside the database that the restoration was reported. If the daemon dies before, or cannot write a notice,
// the next daemon repeats the report. `store` must be the store of `jobs`. Blocks on the store's writer.
absl::Status TellOfRestoration(const std::string& database_path, const Restoration& restoration,
                               const std::string& jobs_folder, const std::vector<v1::Upload>& uploads,
                               Store* store, JobMachine* jobs);

// Logs the folders in `uploads_folder` from before a restoration that hold no readable upload. No list shows
// these folders, and nothing deletes them, so each daemon logs them.
void LogUnreadableUploads(const std::string& uploads_folder, const std::vector<std::string>& ids);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_RESTORATION_H_
