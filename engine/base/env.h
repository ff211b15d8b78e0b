#ifndef TANDEM_ENGINE_BASE_ENV_H_
#define TANDEM_ENGINE_BASE_ENV_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// A file being written. Not thread-safe. Closed, not synced, when destroyed.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual absl::Status Append(absl::string_view data) = 0;
  // Returns when all that was appended is on stable storage.
  virtual absl::Status Sync() = 0;
  virtual absl::Status Close() = 0;
};

// The file system, behind an interface so that tests can fail writes and lose what was not synced.
// Thread-safe. Errors carry the path and the system's reason.
class Env {
 public:
  virtual ~Env() = default;

  // Creates the file, or empties it where it exists.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) = 0;
  // To be written from its end on. NOT_FOUND: there is no such file.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> AppendToFile(const std::string& path) = 0;
  virtual absl::StatusOr<std::string> ReadFile(const std::string& path) = 0;
  // Replaces `to` where it exists.
  virtual absl::Status RenameFile(const std::string& from, const std::string& to) = 0;
  virtual absl::Status RemoveFile(const std::string& path) = 0;
  // Makes creations, renames and removals in a folder durable.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;
  // The names of what is in a folder, in no order. NOT_FOUND: there is no such folder.
  virtual absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) = 0;

  // The machine's file system; lives for ever.
  static Env* Real();
};

// Makes `path` hold what `write` appends, or leaves it as it was: a temporary file beside it, synced, then
// renamed, then the folder synced. When it returns OK the content is durable.
absl::Status WriteFileAtomically(Env* env, const std::string& path,
                                 const std::function<absl::Status(WritableFile&)>& write);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_ENV_H_
