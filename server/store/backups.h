#ifndef TANDEM_SERVER_STORE_BACKUPS_H_
#define TANDEM_SERVER_STORE_BACKUPS_H_

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "tandem/v1/backup.pb.h"

namespace tandem {

// Copies of the store's database in a folder of their own: "<id>.db", and "<id>.db.sha256" as sha256sum
// writes and checks it. An id is the time at which the copy was begun, "20261122T141530Z", with "-auto"
// behind it where the daemon made it by itself, and "-2" and so on where there was one of that second.
// Thread-safe.
class Backups {
 public:
  struct Options {
    // Made with the first of them.
    std::string folder;
    std::string database_path;
    // So many of those that the daemon made by itself are kept; others stay. At least 1.
    int kept = 7;
    const Clock* clock = Clock::Real();
  };
  explicit Backups(Options options) : options_(std::move(options)) {}

  // Copies the database as it is at one moment, while it is in use; reads the copy back, makes it durable,
  // and removes automatic ones beyond those that are kept. RESOURCE_EXHAUSTED: the disk is full, and nothing
  // is left of the copy. ABORTED: another backup is being made. DATA_LOSS: the database, or the copy, is
  // damaged.
  absl::StatusOr<v1::Backup> Create(bool automatic);

  // Has one that is being made, and all later ones, fail with CANCELLED, soon.
  void Stop() { stopping_ = true; }

  // Those that there are, whole or not, the newest first.
  absl::StatusOr<std::vector<v1::Backup>> List() const;

  // Whether the file is what was written, by its checksum, and a whole database. DATA_LOSS: it is not.
  static absl::Status Verify(const v1::Backup& backup);

 private:
  std::string PathOf(const std::string& id) const { return options_.folder + "/" + id + ".db"; }
  absl::StatusOr<v1::Backup> Copy(const std::string& id, absl::Time now, bool automatic);
  // Errors are no concern of the backup just made.
  void RemoveOldOnes();

  const Options options_;
  // One is being made.
  std::atomic<bool> making_ = false;
  std::atomic<bool> stopping_ = false;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_BACKUPS_H_
