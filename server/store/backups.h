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

// Copies of the store's database in a folder of their own: "<id>.db", and "<id>.db.sha256" as sha256sum
// writes and checks it. An id is the time at which the copy was begun, "20261122T141530Z", with "-auto"
// behind it where the daemon made it by itself, "-schema<version>-<what was copied>" where it made it before
// a migration, and "-2" and so on where there was one of that second. Thread-safe.
class Backups {
 public:
  struct Options {
    // Made with the first of them.
    std::string folder;
    std::string database_path;
    // So many "-auto" ones are kept; others stay. At least 1.
    int kept = 7;
    const Clock* clock = Clock::Real();
    // Told where the database, not only a copy of it, turns out to be damaged, on the caller's thread.
    std::function<void(const absl::Status&)> on_damage = nullptr;
    // For tests: told of a copy that is about to be read back.
    std::function<void(const std::string& path)> on_copied = nullptr;
  };
  explicit Backups(Options options) : options_(std::move(options)) {}

  // Copies the database as it is at one moment, while it is in use; reads the copy back, makes it durable,
  // and removes automatic ones beyond those that are kept. RESOURCE_EXHAUSTED: the disk is full, and nothing
  // is left of the copy. ABORTED: another backup is being made. DATA_LOSS: the database, of which IsDamage is
  // true and on_damage is told, or the copy, is damaged.
  absl::StatusOr<v1::Backup> Create(bool automatic);

  // Likewise by a connection that is open, has no transaction open, and may be of a file that is gone. Waits
  // for another backup's end, and goes on after Stop: what it copies may be nowhere else.
  absl::StatusOr<v1::Backup> CreateFrom(Connection* connection);

  // As Create, before the schema is brought up from `version`, with nobody else at the database: one that is
  // there, and whole, of the same content will do. It does not count among those that are kept, and takes the
  // place of those that were made before the same step.
  absl::StatusOr<v1::Backup> CreateBeforeMigration(int64_t version);

  // Has one that is being made, and all later ones, fail with CANCELLED, soon, and nothing is left of them.
  void Stop() { interruption_.Request(); }

  // Those that there are, whole or not, the newest first.
  absl::StatusOr<std::vector<v1::Backup>> List() const;
  // How old the newest of those is that are not of the future; nothing: there is none.
  std::optional<absl::Duration> NewestAge() const;

  // Whether the file is what was written, by its checksum, and a whole database. DATA_LOSS: it is not.
  static absl::Status Verify(const v1::Backup& backup);

 private:
  std::string PathOf(const std::string& id) const { return options_.folder + "/" + id + ".db"; }
  // `kind` is what ids have after their time.
  // By `connection`; null: by one of its own.
  absl::StatusOr<v1::Backup> Make(const std::string& kind, Connection* connection = nullptr);
  absl::StatusOr<v1::Backup> Copy(const std::string& id, absl::Time now, Connection* connection);
  absl::StatusOr<std::string> CopyTo(const std::string& temporary, Connection* connection);
  static void Remove(const v1::Backup& backup);
  // Errors are no concern of the backup just made.
  void RemoveOldOnes();

  const Options options_;
  // One is being made.
  std::atomic<bool> making_ = false;
  Interruption interruption_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_BACKUPS_H_
