#ifndef TANDEM_SERVER_STORE_RECOVERY_H_
#define TANDEM_SERVER_STORE_RECOVERY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "server/store/backups.h"

namespace tandem {

// A database that was put in the place of another one.
struct Restoration {
  // Where it came from, and when that was copied; infinite past where nobody knows.
  std::string backup_path;
  absl::Time backup_time = absl::InfinitePast();
  // Where the other one is now; empty where there was none.
  std::string aside;
  // What is wrong with it; empty where somebody asked for the restoration.
  std::string damage;
};

// The newest attempt of which something is in a job's folder; 0: none.
using NewestAttempt = std::function<int32_t(const std::string& job_id)>;

// Puts a copy of `backup_path`, which stays as it is, in the place of the database, and that aside, as
// "<database>.damaged-<time>". The copy is made ready first: attempts of jobs go on from the newest that was
// ever begun, so that no two workers share a number; no job counts as deleted for good, so that no folder of
// one that came later is removed; and cursors of changes go on far behind those that were ever given. A
// daemon that dies meanwhile is no harm: PrepareDatabase goes on. Nobody has the database open. DATA_LOSS:
// the backup is damaged. FAILED_PRECONDITION: it is of a newer version. The database is untouched then.
absl::StatusOr<Restoration> RestoreDatabase(const std::string& database_path, const std::string& backup_path,
                                            const NewestAttempt& newest_attempt, const Clock* clock);

// To be called before Store::Open, with nobody else at the database. Goes on with a restoration that was cut
// off; reads the database, and where it is damaged restores the newest backup that is whole; has a backup
// made where Store::Open is going to bring the schema up to date. What was restored, if anything. DATA_LOSS:
// it is damaged, and there is no whole backup; nothing was changed. FAILED_PRECONDITION: it was written by a
// newer version. Others: as Backups::Create, where a migration would go on without one.
absl::StatusOr<std::optional<Restoration>> PrepareDatabase(const std::string& database_path, Backups* backups,
                                                           const NewestAttempt& newest_attempt,
                                                           const Clock* clock);

// Notes that the database was found to be damaged while it was in use, so that the next PrepareDatabase looks
// at every part of it.
void SuspectDatabase(const std::string& database_path, const std::string& why);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_RECOVERY_H_
