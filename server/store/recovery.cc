#include "server/store/recovery.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "engine/base/env.h"
#include "engine/base/random_access_env.h"
#include "engine/base/status_macros.h"
#include "server/store/connection.h"
#include "server/store/database_check.h"
#include "server/store/job_rows.h"
#include "server/store/records.h"
#include "server/store/transaction.h"

namespace tandem {
namespace {

// A complete database that will replace the other database, and an incomplete one.
constexpr char kRestored[] = ".restored";
constexpr char kRestoring[] = ".restoring";
constexpr char kSuspect[] = ".suspect";
// The marks of the last restoration, and of an unfinished restoration.
constexpr char kMark[] = ".restoration";
constexpr char kPendingMark[] = ".restoring-mark";
constexpr char kLog[] = "-wal";
constexpr char kLogIndex[] = "-shm";
// More than the changes since any backup.
constexpr int64_t kSkippedCursors = 1'000'000'000;

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

absl::Status BringUpAttempts(Connection* connection, const NewestAttempt& newest_attempt) {
  std::vector<StoredJob> jobs;
  TANDEM_RETURN_IF_ERROR(WithoutExceptions("read the jobs", [&]() -> absl::Status {
    Query query(connection, "SELECT " TANDEM_JOB_COLUMNS_WITHOUT_SPEC
                            " FROM jobs WHERE NOT " TANDEM_IS_DELETED " ORDER BY number");
    while (query.Next()) {
      TANDEM_ASSIGN_OR_RETURN(StoredJob job, ReadJobRow(*connection, &query, /*with_spec=*/false));
      const int32_t newest = newest_attempt(JobId(job.job.name()));
      if (newest <= job.job.attempt()) continue;
      job.job.set_attempt(newest);
      job.job.clear_cluster_attempt();
      // The restored database has no events of this attempt's worker.
      job.last_worker_sequence = 0;
      jobs.push_back(std::move(job));
    }
    return absl::OkStatus();
  }));
  Transaction transaction(connection);
  for (StoredJob& job : jobs) TANDEM_RETURN_IF_ERROR(transaction.UpdateJob(&job));
  return absl::OkStatus();
}

// Lets the cursors of changes continue after the time in microseconds since 1970. Each restoration has
// another time, and changes are rarer than microseconds, so no cursor is used twice. If the clock was set
// back behind the backup's newest cursor, the cursors continue far after this cursor.
absl::Status SkipCursors(Connection* connection, absl::Time now) {
  // The row is missing if there was no change yet.
  TANDEM_RETURN_IF_ERROR(
      connection->Execute("INSERT INTO sqlite_sequence (name, seq) SELECT 'changes', 0 "
                          "WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'changes')"));
  const int64_t time_us = absl::ToUnixMicros(now);
  return connection->Execute(absl::StrCat("UPDATE sqlite_sequence SET seq = iif(seq < ", time_us, ", ",
                                          time_us, ", seq + ", kSkippedCursors, ") WHERE name = 'changes'"));
}

// See RestoreDatabase.
absl::Status MakeReady(const std::string& path, const NewestAttempt& newest_attempt, const Clock* clock,
                       absl::Span<const Migration> migrations) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> connection,
                          Connection::Open(path, Connection::Access::kReadWrite));
  TANDEM_RETURN_IF_ERROR(Migrate(connection.get(), migrations));
  TANDEM_RETURN_IF_ERROR(connection->Execute("BEGIN IMMEDIATE"));
  TANDEM_RETURN_IF_ERROR(BringUpAttempts(connection.get(), newest_attempt));
  TANDEM_RETURN_IF_ERROR(connection->Execute("DELETE FROM deleted_jobs"));
  TANDEM_RETURN_IF_ERROR(SkipCursors(connection.get(), clock->Now()));
  TANDEM_RETURN_IF_ERROR(connection->Execute("COMMIT"));
  // A single file without a log beside it.
  return connection->Execute("PRAGMA journal_mode = DELETE");
}

absl::Status CopyDurably(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot copy ", from, " to ", to));
  return absl::OkStatus();
}

// Makes a complete, prepared and durable copy of the backup.
absl::Status MakeCopy(const std::string& backup_path, const std::string& copy,
                      const NewestAttempt& newest_attempt, const Clock* clock,
                      absl::Span<const Migration> migrations) {
  TANDEM_RETURN_IF_ERROR(CopyDurably(backup_path, copy));
  const absl::StatusOr<int64_t> version = CheckDatabase(copy, CheckDepth::kWhole);
  if (absl::IsDataLoss(version.status())) {
    return absl::DataLossError(absl::StrCat(
        "cannot restore ", backup_path, ": ",
        absl::StrReplaceAll(version.status().message(), {{copy, "its copy"}}), "; use another backup"));
  }
  TANDEM_RETURN_IF_ERROR(version.status());
  TANDEM_RETURN_IF_ERROR(CheckNotNewer(backup_path, *version, migrations));
  if (*version == 0)
    return absl::DataLossError(absl::StrCat("cannot restore ", backup_path,
                                            ": it is not a database of tandemd; use another backup"));
  TANDEM_RETURN_IF_ERROR(MakeReady(copy, newest_attempt, clock, migrations));
  TANDEM_ASSIGN_OR_RETURN(const auto file,
                          RandomAccessEnv::Real()->OpenRandomAccess(copy, RandomAccessEnv::Open::kExisting));
  return file->Sync();
}

// Moves "<database>.restored" to the database's path.
absl::StatusOr<Restoration> Exchange(const std::string& database_path, const Clock* clock) {
  Env* const env = Env::Real();
  const std::string pending = database_path + kPendingMark;
  absl::StatusOr<std::optional<Restoration>> marked = ReadRestorationMark(pending);
  if (!marked.ok()) {
    return absl::Status(
        marked.status().code(),
        absl::StrCat(
            marked.status().message(),
            "; the file records an interrupted restoration: its backup, and the new place of the old "
            "database. Remove the file to finish the restoration without this record"));
  }
  TANDEM_ASSIGN_OR_RETURN(const std::optional<Restoration> earlier, LastRestoration(database_path));
  Restoration restoration = (*std::move(marked)).value_or(Restoration());
  if (restoration.backup_path.empty()) restoration.backup_path = "a backup whose restoration was cut off";
  restoration.time = clock->Now();
  if (earlier.has_value()) restoration.time = std::max(restoration.time, earlier->time);
  const std::string first = absl::StrCat(
      database_path, ".damaged-", absl::FormatTime("%E4Y%m%dT%H%M%SZ", clock->Now(), absl::UTCTimeZone()));
  TANDEM_ASSIGN_OR_RETURN(const bool is_there, IsDatabaseThere(database_path));
  std::string aside = first;
  for (int i = 2; Exists(aside) || Exists(aside + kLog); ++i) aside = absl::StrCat(first, "-", i);
  // An interrupted restoration may already have moved the database aside.
  if (!restoration.aside.empty() && !(Exists(restoration.aside) && is_there)) {
    aside = restoration.aside;
  }
  if (is_there) restoration.aside = aside;
  TANDEM_RETURN_IF_ERROR(WriteRestorationMark(pending, restoration));
  // Move the log first: it must never be applied to the restored database.
  if (Exists(database_path + kLog))
    TANDEM_RETURN_IF_ERROR(env->RenameFile(database_path + kLog, aside + kLog));
  if (Exists(database_path + kLogIndex)) TANDEM_RETURN_IF_ERROR(env->RemoveFile(database_path + kLogIndex));
  TANDEM_RETURN_IF_ERROR(env->SyncDirectory(ParentFolder(database_path)));
  if (is_there) TANDEM_RETURN_IF_ERROR(env->RenameFile(database_path, aside));
  // Write the mark first, so that a restored database always has its mark.
  TANDEM_RETURN_IF_ERROR(WriteRestorationMark(database_path + kMark, restoration));
  TANDEM_RETURN_IF_ERROR(env->RenameFile(database_path + kRestored, database_path));
  env->RemoveFile(database_path + kSuspect).IgnoreError();
  TANDEM_RETURN_IF_ERROR(env->SyncDirectory(ParentFolder(database_path)));
  env->RemoveFile(pending).IgnoreError();
  return restoration;
}

}  // namespace

// Unlike Exists, reports errors: the database must not count as missing if the system cannot tell, or if it
// is a link to an unmounted disk.
absl::StatusOr<bool> IsDatabaseThere(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT) return false;
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect ", path));
}

absl::StatusOr<Restoration> RestoreDatabase(const std::string& database_path, const Restoration& wanted,
                                            const NewestAttempt& newest_attempt, const Clock* clock,
                                            absl::Span<const Migration> migrations) {
  const std::string& backup_path = wanted.backup_path;
  RandomAccessEnv* const env = RandomAccessEnv::Real();
  // Check the mark before any change.
  TANDEM_RETURN_IF_ERROR(LastRestoration(database_path).status());
  // Finish an interrupted restoration first: it may have moved a part of the database.
  if (Exists(database_path + kRestored)) TANDEM_RETURN_IF_ERROR(Exchange(database_path, clock).status());
  const std::string restoring = database_path + kRestoring;
  const auto remove = [&] {
    for (const char* const side : {"", kLog, kLogIndex}) env->RemoveFile(restoring + side).IgnoreError();
  };
  remove();
  if (absl::Status made = MakeCopy(backup_path, restoring, newest_attempt, clock, migrations); !made.ok()) {
    remove();
    return made;
  }
  Restoration pending;
  pending.backup_path = backup_path;
  pending.backup_time = wanted.backup_time;
  pending.damage = wanted.damage;
  TANDEM_RETURN_IF_ERROR(WriteRestorationMark(database_path + kPendingMark, pending));
  TANDEM_RETURN_IF_ERROR(env->RenameFile(restoring, database_path + kRestored));
  TANDEM_RETURN_IF_ERROR(env->SyncDirectory(ParentFolder(database_path)));
  return Exchange(database_path, clock);
}

absl::StatusOr<std::optional<Restoration>> LastRestoration(const std::string& database_path) {
  absl::StatusOr<std::optional<Restoration>> restoration = ReadRestorationMark(database_path + kMark);
  if (restoration.ok()) return restoration;
  return absl::Status(
      restoration.status().code(),
      absl::StrCat(restoration.status().message(),
                   "; the file has the time of the last restoration, before which nothing may be removed. "
                   "Bring it back, or write one line with that time, or the present time, into it: "
                   "time=2026-01-31T12:00:00Z. Remove the file only if the database was never restored"));
}

absl::Status NoteTold(const std::string& database_path) {
  TANDEM_ASSIGN_OR_RETURN(std::optional<Restoration> restoration, LastRestoration(database_path));
  if (!restoration.has_value()) return absl::OkStatus();
  restoration->told = true;
  return WriteRestorationMark(database_path + kMark, *restoration);
}

absl::StatusOr<std::optional<Restoration>> PrepareDatabase(const std::string& database_path, Backups* backups,
                                                           const NewestAttempt& newest_attempt,
                                                           const std::string& remains, const Clock* clock,
                                                           absl::Span<const Migration> migrations) {
  std::optional<Restoration> restored;
  TANDEM_RETURN_IF_ERROR(LastRestoration(database_path).status());
  if (Exists(database_path + kRestored)) {
    TANDEM_ASSIGN_OR_RETURN(restored, Exchange(database_path, clock));
  }
  std::error_code error;
  TANDEM_ASSIGN_OR_RETURN(const bool is_there, IsDatabaseThere(database_path));
  const bool is_suspect = Exists(database_path + kSuspect);
  absl::StatusOr<int64_t> version = 0;
  if (!is_there || (std::filesystem::file_size(database_path, error) == 0 && !error)) {
    // SQLite would treat both as a new database.
    const std::string damage =
        absl::StrCat(database_path, is_there ? " is damaged: it is empty" : " is missing");
    TANDEM_ASSIGN_OR_RETURN(const std::vector<v1::Backup> all, backups->List());
    if (!all.empty()) {
      version = absl::DataLossError(damage);
    } else if (!remains.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot start: ", damage, ", but ", remains,
          " belong to it; bring it back, restore a backup with --restore-backup FILE, or move everything "
          "aside with --begin-anew"));
    } else if (!is_there) {
      return restored;
    }
  } else {
    version = CheckDatabase(database_path, is_suspect ? CheckDepth::kWhole : CheckDepth::kQuick);
  }
  if (absl::IsDataLoss(version.status())) {
    const std::string damage(version.status().message());
    TANDEM_ASSIGN_OR_RETURN(std::vector<v1::Backup> all, backups->List());
    // Backups from the future have a wrong time. Use them last.
    const absl::Time now = clock->Now();
    std::stable_partition(all.begin(), all.end(), [now](const v1::Backup& backup) {
      return absl::FromUnixSeconds(backup.create_time().seconds()) <= now;
    });
    // The first error of a restoration.
    absl::Status unusable;
    for (const v1::Backup& backup : all) {
      if (!Backups::Verify(backup).ok()) continue;
      Restoration wanted;
      wanted.backup_path = backup.path();
      wanted.backup_time = absl::FromUnixSeconds(backup.create_time().seconds());
      wanted.damage = damage;
      absl::StatusOr<Restoration> done =
          RestoreDatabase(database_path, wanted, newest_attempt, clock, migrations);
      // RestoreDatabase already migrated it.
      if (done.ok()) return *std::move(done);
      if (!absl::IsDataLoss(done.status()) && !absl::IsFailedPrecondition(done.status()))
        return done.status();
      unusable.Update(done.status());
    }
    TANDEM_RETURN_IF_ERROR(unusable);
    return absl::DataLossError(absl::StrCat("cannot start: ", damage,
                                            ", and there is no undamaged backup; restore one with "
                                            "--restore-backup FILE, or move everything aside "
                                            "with --begin-anew"));
  }
  TANDEM_RETURN_IF_ERROR(version.status());
  if (is_suspect) Env::Real()->RemoveFile(database_path + kSuspect).IgnoreError();
  TANDEM_RETURN_IF_ERROR(CheckNotNewer(database_path, *version, migrations));
  if (*version > 0 && *version < static_cast<int64_t>(migrations.size())) {
    const absl::StatusOr<v1::Backup> made = backups->CreateBeforeMigration(*version);
    if (!made.ok()) {
      return absl::Status(made.status().code(),
                          absl::StrCat("cannot make the backup that the migration to schema ",
                                       migrations.size(), " needs: ", made.status().message()));
    }
  }
  return restored;
}

void SuspectDatabase(const std::string& database_path, const std::string& why) {
  WriteFileAtomically(Env::Real(), database_path + kSuspect, [&](WritableFile& file) {
    return file.Append(absl::StrCat(why, "\n"));
  }).IgnoreError();
}

}  // namespace tandem
