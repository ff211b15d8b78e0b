#ifndef TANDEM_SERVER_STORE_RESTORATION_MARK_H_
#define TANDEM_SERVER_STORE_RESTORATION_MARK_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tandem {

// A replacement of a database by a backup.
struct Restoration {
  // The backup and its time; infinite past if unknown.
  std::string backup_path;
  absl::Time backup_time = absl::InfinitePast();
  // The new path of the old database; empty if none existed.
  std::string aside;
  // The old database's damage; empty if somebody requested the restoration.
  std::string damage;
  // The time of the restoration; never before an earlier restoration's time.
  absl::Time time = absl::InfinitePast();
  // True if the restoration was reported.
  bool told = false;
};

// Reads a mark, a file of lines "name=value". Only "time" is required. Returns nullopt if the file does not
// exist. Errors name the file: DATA_LOSS if it is no mark; others are the file system's. After an error,
// callers that need the restoration's time must stop.
absl::StatusOr<std::optional<Restoration>> ReadRestorationMark(const std::string& path);
// Writes a mark durably.
absl::Status WriteRestorationMark(const std::string& path, const Restoration& restoration);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_RESTORATION_MARK_H_
