#ifndef TANDEM_SERVER_STORE_RESERVED_ROOM_H_
#define TANDEM_SERVER_STORE_RESERVED_ROOM_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tandem {

// Room in a file system that is kept for what gives room back: a file of blocks that hold nothing, given up a
// slice at a time where the disk is full, so that what else writes to it takes little of it. What is given up
// anybody may take: where that happens before it is used, the disk is as full as before. Not thread-safe.
class ReservedRoom {
 public:
  static constexpr int64_t kSize = int64_t{4} << 20;
  // More than the deletion of a job writes, with the pages of the log and the database's that it takes.
  static constexpr int64_t kSlice = kSize / 8;
  // How long it waits before it looks again whether there is room for what was given up.
  static constexpr absl::Duration kPause = absl::Seconds(10);

  // Bytes that the file system of a folder has for whoever asks; below 0: nobody can tell.
  using Available = std::function<int64_t(const std::string& folder)>;
  static int64_t AvailableBytes(const std::string& folder);

  // Where a database's is.
  static std::string PathBeside(const std::string& database_path) { return database_path + "-reserve"; }

  // Of the file at `path`, which it makes, or takes over as an earlier one left it. A disk that is too full
  // for it is none of its errors: it has less, or nothing.
  explicit ReservedRoom(std::string path, Available available = AvailableBytes);

  // To be called before something is written that gives room back. Gives up a slice where less than that is
  // available, or where `was_full`: the last write has found none, whatever the system says.
  void GiveUpIfFull(bool was_full);
  // Takes back what was given up, where twice as much is available. `now` is of Clock::Elapsed(); it looks at
  // most once every kPause.
  void Refill(absl::Duration now);

  // What it has.
  int64_t bytes() const { return bytes_; }

 private:
  // Makes the file one of kSize bytes, or leaves it as it was.
  absl::Status Allocate();

  const std::string path_;
  const std::string folder_;
  const Available available_;
  int64_t bytes_ = 0;
  absl::Duration next_look_ = -absl::InfiniteDuration();
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_RESERVED_ROOM_H_
