#ifndef TANDEM_SERVER_STORE_BACKUPS_H_
#define TANDEM_SERVER_STORE_BACKUPS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "server/store/interruption.h"
#include "tandem/v1/backup.pb.h"

namespace tandem {

class Connection;

// Copies of the store's database, in a separate folder: "<id>.db", and "<id>.db.sha256" in sha256sum's
// format. Thread-safe.
//
// An id is the time of the backup's start, for example "20261122T141530Z". It ends in "-auto" for automatic
// backups, and in "-schema<version>-<digest of the content>" for backups before a migration. If another
// backup has the same time, "-2" and so on is appended.
class Backups {
 public:
  struct Options {
    // Created with the first backup.
    std::string folder;
    std::string database_path;
    // The number of kept "-auto" backups; at least 1. Other backups are never removed.
    int kept = 7;
    const Clock* clock = Clock::Real();
    // Called if the database itself, not only a copy, is damaged. Runs on the caller's thread.
    std::function<void(const absl::Status&)> on_damage = nullptr;
    // For tests: called before a copy is read back.
    std::function<void(const std::string& path)> on_copied = nullptr;
  };
  explicit Backups(Options options) : options_(std::move(options)) {}

  // Copies the database in one snapshot, while others use it. Reads the copy back, makes it durable, and
  // removes old automatic backups. RESOURCE_EXHAUSTED: the disk is full, and the copy was removed. ABORTED:
  // another backup is running. DATA_LOSS: the database or the copy is damaged. If the database is damaged,
  // IsDamage is true, and on_damage is called.
  absl::StatusOr<v1::Backup> Create(bool automatic);

  // The same over an open connection without an open transaction. Its file may have been removed. Blocks
  // until a running backup ends, and ignores Stop, because the connection may hold the only copy.
  absl::StatusOr<v1::Backup> CreateFrom(Connection* connection);

  // Like Create, before a migration from schema `version`. Nobody else may use the database. Reuses an
  // existing valid backup of the same content. The backup does not count among the kept backups, and replaces
  // the earlier backups before the same migration.
  absl::StatusOr<v1::Backup> CreateBeforeMigration(int64_t version);

  // Makes the running backup and all later backups fail with CANCELLED, soon and without a rest.
  void Stop() { interruption_.Request(); }

  // Returns all backups, valid or not, newest first.
  absl::StatusOr<std::vector<v1::Backup>> List() const;
  // Returns the age of the newest backup that is not from the future; nullopt if none.
  std::optional<absl::Duration> NewestAge() const;

  // Checks a backup's checksum and its database. DATA_LOSS: the backup is damaged.
  static absl::Status Verify(const v1::Backup& backup);

 private:
  std::string PathOf(const std::string& id) const { return options_.folder + "/" + id + ".db"; }
  // `kind` is the part of the id after the time. If `connection` is null, opens a new connection.
  absl::StatusOr<v1::Backup> Make(const std::string& kind, Connection* connection = nullptr);
  absl::StatusOr<v1::Backup> Copy(const std::string& id, absl::Time now, Connection* connection);
  absl::StatusOr<std::string> CopyTo(const std::string& temporary, Connection* connection);
  static void Remove(const v1::Backup& backup);
  // Ignores errors, because the new backup is fine.
  void RemoveOldOnes();

  const Options options_;
  // True while a backup is running.
  std::atomic<bool> making_ = false;
  Interruption interruption_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_BACKUPS_H_
