#ifndef TANDEM_SERVER_STORE_DATABASE_FILE_H_
#define TANDEM_SERVER_STORE_DATABASE_FILE_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem {

// A file that is open under this name: whether it still is the one that the name leads to. What is written
// to one that was removed goes with the process. Immutable, so thread-safe.
class DatabaseFile {
 public:
  // That of now. NOT_FOUND and others: the system's errors.
  static absl::StatusOr<DatabaseFile> At(const std::string& path);

  // UNAVAILABLE: it was removed, or another one took its place. What cannot be looked at counts as there.
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
