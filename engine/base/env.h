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

// An open file for appending. The destructor closes the file without Sync. Not thread-safe.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual absl::Status Append(absl::string_view data) = 0;
  // Returns after all appended data is on stable storage.
  virtual absl::Status Sync() = 0;
  virtual absl::Status Close() = 0;
};

// The file system, as an interface so that tests can fail writes and lose unsynced data. Thread-safe. Errors
// name the path and the system's reason.
class Env {
 public:
  virtual ~Env() = default;

  // Creates the file, or empties an existing file.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) = 0;
  // Creates a file that only its owner may read and write. Removes an existing file or link first.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> CreatePrivateFile(const std::string& path) = 0;
  // Opens an existing file for writing at its end. NOT_FOUND if no such file exists.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> AppendToFile(const std::string& path) = 0;
  virtual absl::StatusOr<std::string> ReadFile(const std::string& path) = 0;
  // Renames a file. Replaces `to` if it exists.
  virtual absl::Status RenameFile(const std::string& from, const std::string& to) = 0;
  virtual absl::Status RemoveFile(const std::string& path) = 0;
  // Makes creations, renames and removals in the folder durable.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;
  // Returns the names of all entries of a folder, in no order. NOT_FOUND if no such folder exists.
  virtual absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) = 0;

  // Returns the machine's file system. It is never destroyed.
  static Env* Real();
};

// The ending of WriteFileAtomically's temporary files.
inline constexpr char kUnfinishedEnding[] = ".tmp";

struct AtomicWrite {
  // The parts that survive a crash of the machine after OK. A crash of the process damages nothing.
  enum class Durable {
    kNothing,
    kContent,         // The file is whole under its old or its new content.
    kContentAndName,  // The file has its new content.
  };
  Durable durable = Durable::kContentAndName;
  // True if only the owner may read and write the file.
  bool is_private = false;
};

// Replaces the content of `path` by the data that `write` appends. Readers see the old or the new content,
// never a part. After an error `path` has its old content, unless syncing the folder failed. Writes and syncs
// a temporary file beside `path`, renames it, then syncs the folder.
absl::Status WriteFileAtomically(Env* env, const std::string& path,
                                 const std::function<absl::Status(WritableFile&)>& write,
                                 const AtomicWrite& options = {});

// Returns the content of a file, or "" if the file cannot be read.
std::string ContentOrEmpty(const std::string& path);

// Returns the folder of the file `path`: "." for a bare name.
std::string ParentFolder(const std::string& path);

// Makes a folder that only its owner may use. Does nothing if `path` exists. NOT_FOUND: its parent does not
// exist.
absl::Status EnsureOwnerFolder(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_ENV_H_
