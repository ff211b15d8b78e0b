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

// By the attempts' folders in a job's folder, which stay there.
NewestAttempt NewestAttemptIn(const std::string& jobs_folder);

// Puts DaemonOptions::restore_backup, a file or a backup's id, in the place of the database of the state
// folder, which no daemon holds. What was done, in sentences for people. NOT_FOUND: there is no such file;
// others: as StateFolder::Lock and RestoreDatabase.
absl::StatusOr<std::string> RestoreAsAsked(const DaemonOptions& options);

// Says what was lost, unless that was said: to the log, with the folders of jobs and the uploads that the
// restored database does not know, which stay; and to jobs that have not ended, each of which has it in its
// log once. Then notes, at the database's path, that it was said: a daemon that dies before, or cannot write
// to the jobs' logs, leaves it to the next one. `store` is that of `jobs`. Waits for the store's writer.
absl::Status TellOfRestoration(const std::string& database_path, const Restoration& restoration,
                               const std::string& jobs_folder, const std::vector<v1::Upload>& uploads,
                               Store* store, JobMachine* jobs);

// Names folders in `uploads_folder` that are from before a restoration and hold no upload that can be read.
// They are in no list, and stay until somebody has looked at them: so each daemon names them.
void LogUnreadableUploads(const std::string& uploads_folder, const std::vector<std::string>& ids);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_RESTORATION_H_
