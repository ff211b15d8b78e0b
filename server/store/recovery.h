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

// The newest attempt of which something is in a job's folder; 0: none.
using NewestAttempt = std::function<int32_t(const std::string& job_id)>;

// Whether there is a database, which may be a link to a disk that is not mounted. Errors: nobody could look.
absl::StatusOr<bool> IsDatabaseThere(const std::string& path);

// Puts a copy of `wanted.backup_path`, which stays as it is, in the place of the database, and that aside, as
// "<database>.damaged-<time>"; of `wanted` the backup's time and the damage are kept, too. The copy is made
// ready first: attempts of jobs go on from the newest that was ever begun, so that no two workers share a
// number; no job counts as deleted for good, so that no folder of one that came later is removed; and cursors
// of changes go on far behind those that were ever given. A daemon that dies meanwhile is no harm:
// PrepareDatabase goes on. What was done is LastRestoration's from then on. Nobody has the database open.
// DATA_LOSS: the backup is damaged. FAILED_PRECONDITION: it is of a newer version. Others: as
// LastRestoration. The database is untouched then. Tests give other `migrations` than this program's.
absl::StatusOr<Restoration> RestoreDatabase(const std::string& database_path, const Restoration& wanted,
                                            const NewestAttempt& newest_attempt, const Clock* clock,
                                            absl::Span<const Migration> migrations = Migrations());

// To be called before Store::Open, with nobody else at the database. Goes on with a restoration that was cut
// off; reads the database, and where it is damaged restores the newest backup that is whole; has a backup
// made where Store::Open is going to bring the schema up to date, once however often that fails. What was
// restored, if anything. One that is missing, or empty, is as good as damaged where there are backups; where
// there are none it is a new one, unless `remains`, what there is of another one's, is not empty.
// DATA_LOSS: it is damaged, and there is no whole backup; nothing was changed. FAILED_PRECONDITION: it was
// written by a newer version, or is missing and something remains. Others: as LastRestoration; as
// Backups::Create, where a migration would go on without one.
absl::StatusOr<std::optional<Restoration>> PrepareDatabase(
    const std::string& database_path, Backups* backups, const NewestAttempt& newest_attempt,
    const std::string& remains, const Clock* clock, absl::Span<const Migration> migrations = Migrations());

// The newest restoration of the database, by whomever, that was carried out; nothing: there was none. Where
// its mark cannot be read the error names the file, and says how it is mended: what is from before a
// restoration must not be removed as if there had been none.
absl::StatusOr<std::optional<Restoration>> LastRestoration(const std::string& database_path);
// Notes that those who should know of it do. A mark that cannot be read stays as it is: errors as above.
absl::Status NoteTold(const std::string& database_path);

// Notes that the database was found to be damaged while it was in use, so that the next PrepareDatabase looks
// at every part of it.
void SuspectDatabase(const std::string& database_path, const std::string& why);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_RECOVERY_H_
