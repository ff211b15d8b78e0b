#ifndef TANDEM_SERVER_STORE_DATABASE_FILE_H_
#define TANDEM_SERVER_STORE_DATABASE_FILE_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem {

// Remembers which file a name leads to, to notice that the file was removed or replaced. Later writes to a
// removed file are lost with the process. Immutable, so thread-safe.
class DatabaseFile {
 public:
  // Returns the file that `path` leads to now. NOT_FOUND and other errors are the system's.
  static absl::StatusOr<DatabaseFile> At(const std::string& path);

  // UNAVAILABLE: the file was removed or replaced. OK if the system cannot tell.
  absl::Status Check() const;

 private:
  DatabaseFile(std::string path, dev_t device, ino_t inode)
      : path_(std::move(path)), device_(device), inode_(inode) {}

  std::string path_;
  dev_t device_;
  ino_t inode_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_DATABASE_FILE_H_
