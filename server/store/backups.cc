#include "server/store/backups.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/env.h"
#include "engine/base/random_access_env.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "server/store/connection.h"
#include "server/store/database_check.h"

namespace tandem {
namespace {

constexpr char kTimeFormat[] = "%E4Y%m%dT%H%M%SZ";
constexpr size_t kTimeLength = sizeof("20261122T141530Z") - 1;
constexpr char kEnding[] = ".db";
constexpr char kTemporary[] = ".db.tmp";
constexpr char kChecksum[] = ".sha256";
constexpr char kAutomatic[] = "-auto";
constexpr char kMigration[] = "-schema";
// The hexadecimal digits that identify a database's content in an id.
constexpr size_t kContentDigits = 12;
constexpr size_t kPiece = size_t{1} << 20;
constexpr absl::Duration kMakingInterval = absl::Milliseconds(10);

// Returns the time in an id; infinite past if the id is invalid.
absl::Time TimeOf(absl::string_view id) {
  absl::Time time;
  if (id.size() < kTimeLength || (id.size() > kTimeLength && id[kTimeLength] != '-'))
    return absl::InfinitePast();
  return absl::ParseTime(kTimeFormat, id.substr(0, kTimeLength), &time, nullptr) ? time
                                                                                 : absl::InfinitePast();
}

v1::Backup Describe(const std::string& id, const std::string& path) {
  v1::Backup backup;
  backup.set_name(absl::StrCat("backups/", id));
  backup.set_path(path);
  backup.mutable_create_time()->set_seconds(absl::ToUnixSeconds(TimeOf(id)));
  backup.set_automatic(absl::StrContains(id, kAutomatic) || absl::StrContains(id, kMigration));
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!error) backup.set_size_bytes(static_cast<int64_t>(size));
  if (const auto sum = Env::Real()->ReadFile(path + kChecksum); sum.ok()) {
    backup.set_sha256(sum->substr(0, sum->find(' ')));
  }
  return backup;
}

// Like Sha256OfFile, but can be interrupted.
absl::StatusOr<std::string> Sha256Unless(const Interruption& interruption, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string piece(kPiece, '\0');
  Sha256 sum;
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
    sum.Add(absl::string_view(piece).substr(0, file.gcount()));
    if (interruption.requested())
      return absl::CancelledError(absl::StrCat("cannot read ", path, ": the daemon is shutting down"));
  }
  if (!file.eof()) return absl::InternalError(absl::StrCat("cannot read ", path));
  return sum.Finish();
}

// Returns a digest of a database's content. Nobody may have the database open.
absl::StatusOr<std::string> ContentOf(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const std::string sum, Sha256OfFile(path));
  const std::string log = path + "-wal";
  std::error_code error;
  if (!std::filesystem::exists(log, error)) return sum.substr(0, kContentDigits);
  TANDEM_ASSIGN_OR_RETURN(const std::string log_sum, Sha256OfFile(log));
  TANDEM_ASSIGN_OR_RETURN(const std::string both, Sha256Of(sum + log_sum));
  return both.substr(0, kContentDigits);
}

}  // namespace

absl::StatusOr<v1::Backup> Backups::Create(bool automatic) { return Make(automatic ? kAutomatic : ""); }

absl::StatusOr<v1::Backup> Backups::CreateFrom(Connection* connection) { return Make("", connection); }

absl::StatusOr<v1::Backup> Backups::CreateBeforeMigration(int64_t version) {
  TANDEM_ASSIGN_OR_RETURN(const std::string content, ContentOf(options_.database_path));
  const std::string step = absl::StrCat(kMigration, version, "-");
  TANDEM_ASSIGN_OR_RETURN(const std::vector<v1::Backup> earlier, List());
  for (const v1::Backup& backup : earlier) {
    if (absl::StrContains(backup.name(), step + content) && Verify(backup).ok()) return backup;
  }
  absl::StatusOr<v1::Backup> made = Make(step + content);
  if (!made.ok()) return made;
  for (const v1::Backup& backup : earlier) {
    if (absl::StrContains(backup.name(), step)) Remove(backup);
  }
  return made;
}

absl::StatusOr<v1::Backup> Backups::Make(const std::string& kind, Connection* connection) {
  while (making_.exchange(true)) {
    if (connection == nullptr) {
      return absl::AbortedError("cannot make a backup: another one is being made; try again later");
    }
    absl::SleepFor(kMakingInterval);
  }
  absl::StatusOr<v1::Backup> made = [&]() -> absl::StatusOr<v1::Backup> {
    TANDEM_RETURN_IF_ERROR(EnsureOwnerFolder(options_.folder));
    const absl::Time now = options_.clock->Now();
    const std::string first = absl::StrCat(absl::FormatTime(kTimeFormat, now, absl::UTCTimeZone()), kind);
    std::string id = first;
    std::error_code error;
    for (int i = 2; std::filesystem::exists(PathOf(id), error); ++i) id = absl::StrCat(first, "-", i);
    return Copy(id, now, connection);
  }();
  if (made.ok()) RemoveOldOnes();
  making_ = false;
  if (options_.on_damage != nullptr && IsDamage(made.status())) options_.on_damage(made.status());
  return made;
}

absl::StatusOr<std::string> Backups::CopyTo(const std::string& temporary, Connection* connection) {
  Interruption never;
  Interruption& interruption = connection == nullptr ? interruption_ : never;
  std::unique_ptr<Connection> own;
  std::optional<Interruption::Scope> scope;
  if (connection == nullptr) {
    TANDEM_ASSIGN_OR_RETURN(own, Connection::Open(options_.database_path, Connection::Access::kReadWrite));
    scope.emplace(&interruption_, own->handle());
    connection = own.get();
  }
  // Runs in one read transaction, so writers continue meanwhile.
  TANDEM_RETURN_IF_ERROR(WithoutExceptions("copy the database", [&]() -> absl::Status {
    Query(connection, "VACUUM INTO ?").Text(temporary).Run();
    return absl::OkStatus();
  }));
  TANDEM_ASSIGN_OR_RETURN(const int64_t version, connection->QueryInt("PRAGMA user_version"));
  if (options_.on_copied != nullptr) options_.on_copied(temporary);
  const absl::StatusOr<int64_t> copied = CheckDatabase(temporary, CheckDepth::kWhole, &interruption);
  if (absl::IsDataLoss(copied.status())) {
    // Find out if the database or only its copy is damaged.
    TANDEM_RETURN_IF_ERROR(CheckDatabaseInUse(connection, interruption));
    return absl::DataLossError(
        absl::StrCat("the database is undamaged, but its copy is damaged: ", copied.status().message()));
  }
  TANDEM_RETURN_IF_ERROR(copied.status());
  if (*copied != version) {
    return absl::DataLossError(absl::StrCat("the copy ", temporary, " differs from the database"));
  }
  return Sha256Unless(interruption, temporary);
}

absl::StatusOr<v1::Backup> Backups::Copy(const std::string& id, absl::Time now, Connection* connection) {
  const std::string path = PathOf(id);
  const std::string temporary = absl::StrCat(options_.folder, "/", id, kTemporary);
  RandomAccessEnv* const env = RandomAccessEnv::Real();
  const absl::StatusOr<std::string> sum = [&]() -> absl::StatusOr<std::string> {
    TANDEM_ASSIGN_OR_RETURN(std::string sum, CopyTo(temporary, connection));
    TANDEM_ASSIGN_OR_RETURN(const auto file,
                            env->OpenRandomAccess(temporary, RandomAccessEnv::Open::kExisting));
    TANDEM_RETURN_IF_ERROR(file->Sync());
    // Write the checksum before the final name: a backup without a checksum is not trusted.
    TANDEM_RETURN_IF_ERROR(WriteFileAtomically(env, path + kChecksum, [&](WritableFile& file) {
      return file.Append(absl::StrCat(sum, "  ", id, kEnding, "\n"));
    }));
    TANDEM_RETURN_IF_ERROR(env->RenameFile(temporary, path));
    TANDEM_RETURN_IF_ERROR(env->SyncDirectory(options_.folder));
    return sum;
  }();
  if (!sum.ok()) {
    for (const std::string& left : {temporary, temporary + "-journal", path, path + kChecksum}) {
      env->RemoveFile(left).IgnoreError();
    }
    absl::Status failed(sum.status().code(), absl::StrCat("cannot make a backup: ", sum.status().message()));
    // Keep the mark of a damaged database.
    sum.status().ForEachPayload(
        [&](absl::string_view type, const absl::Cord& payload) { failed.SetPayload(type, payload); });
    return failed;
  }
  v1::Backup backup = Describe(id, path);
  backup.mutable_create_time()->set_seconds(absl::ToUnixSeconds(now));
  return backup;
}

void Backups::Remove(const v1::Backup& backup) {
  Env::Real()->RemoveFile(backup.path()).IgnoreError();
  Env::Real()->RemoveFile(backup.path() + kChecksum).IgnoreError();
}

void Backups::RemoveOldOnes() {
  const absl::StatusOr<std::vector<v1::Backup>> all = List();
  if (!all.ok()) return;
  // Backups from the future have a wrong time, and must not push out others.
  const absl::Time now = options_.clock->Now();
  int automatic = 0;
  for (const v1::Backup& backup : *all) {
    if (!absl::StrContains(backup.name(), kAutomatic)) continue;
    if (absl::FromUnixSeconds(backup.create_time().seconds()) <= now && ++automatic > options_.kept)
      Remove(backup);
  }
  // Remove the unfinished backups of killed daemons.
  const absl::StatusOr<std::vector<std::string>> names = Env::Real()->ListFolder(options_.folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (absl::EndsWith(name, kTemporary)) Env::Real()->RemoveFile(options_.folder + "/" + name).IgnoreError();
  }
}

absl::StatusOr<std::vector<v1::Backup>> Backups::List() const {
  const absl::StatusOr<std::vector<std::string>> names = Env::Real()->ListFolder(options_.folder);
  if (absl::IsNotFound(names.status())) return std::vector<v1::Backup>();
  TANDEM_RETURN_IF_ERROR(names.status());
  std::vector<v1::Backup> backups;
  for (const std::string& name : *names) {
    absl::string_view id = name;
    if (!absl::ConsumeSuffix(&id, kEnding) || TimeOf(id) == absl::InfinitePast()) continue;
    backups.push_back(Describe(std::string(id), PathOf(std::string(id))));
  }
  std::sort(backups.begin(), backups.end(), [](const v1::Backup& one, const v1::Backup& other) {
    if (one.create_time().seconds() != other.create_time().seconds()) {
      return one.create_time().seconds() > other.create_time().seconds();
    }
    return one.name().size() != other.name().size() ? one.name().size() > other.name().size()
                                                    : one.name() > other.name();
  });
  return backups;
}

std::optional<absl::Duration> Backups::NewestAge() const {
  const absl::StatusOr<std::vector<v1::Backup>> all = List();
  if (!all.ok()) return std::nullopt;
  for (const v1::Backup& backup : *all) {
    const absl::Duration age = options_.clock->Now() - absl::FromUnixSeconds(backup.create_time().seconds());
    if (age >= absl::ZeroDuration()) return age;
  }
  return std::nullopt;
}

absl::Status Backups::Verify(const v1::Backup& backup) {
  TANDEM_ASSIGN_OR_RETURN(const std::string sum, Sha256OfFile(backup.path()));
  if (sum != backup.sha256()) {
    return absl::DataLossError(absl::StrCat("cannot use ", backup.path(), ": its SHA-256 is not the one in ",
                                            backup.path(), kChecksum, "; use another backup"));
  }
  return CheckDatabase(backup.path(), CheckDepth::kWhole).status();
}

}  // namespace tandem
