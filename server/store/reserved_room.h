#ifndef TANDEM_SERVER_STORE_RESERVED_ROOM_H_
#define TANDEM_SERVER_STORE_RESERVED_ROOM_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tandem {

// Disk space that is reserved for writes that free space: a file of empty blocks. On a full disk,
// GiveUpIfFull frees a slice at a time, so that other writes can use only little of it. Anybody may use a
// freed slice; if so, the disk is as full as before. Not thread-safe.
class ReservedRoom {
 public:
  static constexpr int64_t kSize = int64_t{4} << 20;
  // More than the deletion of a job writes to the log and to the database.
  static constexpr int64_t kSlice = kSize / 8;
  // The least time between two attempts to refill.
  static constexpr absl::Duration kPause = absl::Seconds(10);

  // Returns the bytes that a folder's file system has free; below 0 if unknown.
  using Available = std::function<int64_t(const std::string& folder)>;
  static int64_t AvailableBytes(const std::string& folder);

  // Returns the path of a database's reserved file.
  static std::string PathBeside(const std::string& database_path) { return database_path + "-reserve"; }

  // Creates the file at `path`, or continues an existing file. If the disk is too full, the room is smaller
  // or empty; this is no error.
  explicit ReservedRoom(std::string path, Available available = AvailableBytes);

  // Call before a write that frees disk space. Frees a slice if less than a slice is free. Also frees a slice
  // if `was_full`: the last write found the disk full, whatever the system reports.
  void GiveUpIfFull(bool was_full);
  // Reserves the freed space again if twice as much is free. `now` is Clock::Elapsed(). Tries at most once
  // per kPause.
  void Refill(absl::Duration now);

  // Returns the reserved bytes.
  int64_t bytes() const { return bytes_; }

 private:
  // Grows the file to kSize bytes. After an error, keeps its old size.
  absl::Status Allocate();

  const std::string path_;
  const std::string folder_;
  const Available available_;
  int64_t bytes_ = 0;
  absl::Duration next_look_ = -absl::InfiniteDuration();
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_RESERVED_ROOM_H_
