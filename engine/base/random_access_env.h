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

// A file for reads and writes at any offset. The destructor closes the file without Sync. Not thread-safe,
// except ReadAt: it may run beside calls that do not change the bytes that it reads.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  // Reads `size` bytes into `to`, fewer only at the file's end. Returns the number of bytes.
  virtual absl::StatusOr<int64_t> ReadAt(int64_t offset, int64_t size, char* to) const = 0;
  // Writes all of `data` at `offset`, over existing bytes. A gap before `offset` reads as zeros. After an
  // error any part of `data` may have been written.
  virtual absl::Status WriteAt(int64_t offset, absl::string_view data) = 0;
  // Sets the file's size. New bytes are zeros.
  virtual absl::Status Truncate(int64_t size) = 0;
  // Returns after all written data is on stable storage. The file's name needs Env::SyncDirectory.
  virtual absl::Status Sync() = 0;
  virtual absl::StatusOr<int64_t> Size() const = 0;
};

// A file system with files for reads and writes at any offset, for example for a database or a spool.
// Thread-safe.
class RandomAccessEnv : public Env {
 public:
  enum class Open {
    kReadOnly,   // Writes fail. NOT_FOUND if no such file exists.
    kExisting,   // For reading and writing. NOT_FOUND if no such file exists.
    kCreate,     // Creates the file if it is missing.
    kCreateNew,  // Creates the file. ALREADY_EXISTS if it exists.
    kEmpty,      // Creates the file, or empties an existing file.
  };
  // Opens a file. A new file is readable and writable by its owner alone.
  virtual absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenRandomAccess(const std::string& path,
                                                                             Open how) = 0;

  // Returns the machine's file system. It is never destroyed.
  static RandomAccessEnv* Real();
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_RANDOM_ACCESS_ENV_H_
