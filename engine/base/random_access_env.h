#ifndef TANDEM_ENGINE_BASE_RANDOM_ACCESS_ENV_H_
#define TANDEM_ENGINE_BASE_RANDOM_ACCESS_ENV_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/env.h"

namespace tandem {

// A file that is read and written anywhere. Closed, not synced, when destroyed. For one thread at a time, but
// for ReadAt, which may go on beside anything that does not change what it reads.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  // At most `size` bytes into `to`, fewer only at the file's end; returns how many.
  virtual absl::StatusOr<int64_t> ReadAt(int64_t offset, int64_t size, char* to) const = 0;
  // All of `data`, in place of what is there; a gap before it reads as zeros. After an error any part of it
  // may have been written.
  virtual absl::Status WriteAt(int64_t offset, absl::string_view data) = 0;
  // Makes the file this long, with zeros where it grows.
  virtual absl::Status Truncate(int64_t size) = 0;
  // Returns when all that was written is on stable storage; the file's name may not be (Env::SyncDirectory).
  virtual absl::Status Sync() = 0;
  virtual absl::StatusOr<int64_t> Size() const = 0;
};

// A file system with files that are read and written anywhere: a database, a spool. Thread-safe.
class RandomAccessEnv : public Env {
 public:
  enum class Open {
    kReadOnly,   // NOT_FOUND: there is none. Writes fail.
    kExisting,   // Likewise, but for reading and writing as those below.
    kCreate,     // Where it is missing.
    kCreateNew,  // ALREADY_EXISTS: there is one.
    kEmpty,      // Created, or emptied where it exists.
  };
  // A new file is its owner's alone.
  virtual absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenRandomAccess(const std::string& path,
                                                                             Open how) = 0;

  // The machine's file system; lives for ever.
  static RandomAccessEnv* Real();
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_RANDOM_ACCESS_ENV_H_
