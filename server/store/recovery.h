#ifndef TANDEM_SERVER_STORE_RECOVERY_H_
#define TANDEM_SERVER_STORE_RECOVERY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/clock.h"
#include "server/store/backups.h"
#include "server/store/migrator.h"
#include "server/store/restoration_mark.h"

namespace tandem {

// Returns the newest attempt with files in a job's folder; 0 if none.
using NewestAttempt = std::function<int32_t(const std::string& job_id)>;

// Returns true if the database exists. A link counts, because its disk may not be mounted. An error means
// that the system cannot tell.
absl::StatusOr<bool> IsDatabaseThere(const std::string& path);

// Replaces the database by a copy of `wanted.backup_path`. Moves the old database aside to
// "<database>.damaged-<time>". The mark also gets the backup's time and the damage from `wanted`. Nobody may
// have the database open.
//
// First prepares the copy:
// - Jobs' attempts continue after the newest attempt that ever started, so that no two workers share a
//   number.
// - No job counts as deleted, so that no folder of a later job is removed.
// - Cursors of changes continue after the clock's time in microseconds since 1970. No cursor is used twice,
//   unless the clock was set back since an earlier restoration.
//
// If the daemon dies meanwhile, PrepareDatabase continues. Afterwards, LastRestoration describes the
// restoration. DATA_LOSS: the backup is damaged. FAILED_PRECONDITION: the backup has a newer schema. Other
// errors as LastRestoration. After these errors the database is unchanged. Tests pass other `migrations`.
absl::StatusOr<Restoration> RestoreDatabase(const std::string& database_path, const Restoration& wanted,
                                            const NewestAttempt& newest_attempt, const Clock* clock,
                                            absl::Span<const Migration> migrations = Migrations());

// Prepares the database for Store::Open. Nobody may have the database open. Returns the restoration, if any.
//
// Completes an interrupted restoration. Reads the database, and if it is damaged, restores the newest valid
// backup. If the backup cannot be restored, for example because its schema is newer, tries the next older
// one. Makes a backup before a migration, only once even if the migration keeps failing. A missing or
// empty database counts as damaged if backups exist. Without backups it counts as new, unless `remains` lists
// folders of an earlier database.
//
// DATA_LOSS: the database is damaged and no valid backup exists; nothing changed. FAILED_PRECONDITION: the
// database or each valid backup has a newer schema, or the database is missing and something remains. Other
// errors as LastRestoration, or as Backups::Create if a backup before a migration fails.
absl::StatusOr<std::optional<Restoration>> PrepareDatabase(
    const std::string& database_path, Backups* backups, const NewestAttempt& newest_attempt,
    const std::string& remains, const Clock* clock, absl::Span<const Migration> migrations = Migrations());

// Returns the database's last completed restoration; nullopt if none. If its mark cannot be read, the error
// names the file and the remedy. Callers must then remove nothing, because files from before the restoration
// may still be needed.
absl::StatusOr<std::optional<Restoration>> LastRestoration(const std::string& database_path);
// Notes that the restoration was reported. Leaves an unreadable mark unchanged, with errors as
// LastRestoration.
absl::Status NoteTold(const std::string& database_path);

// Notes that the database was found damaged while in use, so that the next PrepareDatabase checks it
// completely.
void SuspectDatabase(const std::string& database_path, const std::string& why);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_RECOVERY_H_
