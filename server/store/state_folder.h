#ifndef TANDEM_SERVER_STORE_STATE_FOLDER_H_
#define TANDEM_SERVER_STORE_STATE_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// A daemon's state folder, held by this process: one daemon a folder. The hold is a lock on the open file
// "daemon.lock" and ends with the object or the process, however it ends; no other program inherits it.
// Immutable after Lock, so thread-safe.
class StateFolder {
 public:
  // Makes the folder (for its owner alone, parents included) where it is missing, and locks it.
  // FAILED_PRECONDITION, naming the folder: others than its owner may write to it, and so could put a
  // database of theirs in its place; or, with the holder's process id, another daemon holds it. Where that
  // one is dead, a child of it may hold it for a moment longer, which is waited for, as is one that stops,
  // for 20 s. PERMISSION_DENIED, NOT_FOUND and others: the system refused; the message names the path.
  static absl::StatusOr<std::unique_ptr<StateFolder>> Lock(absl::string_view path);

  ~StateFolder();
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  // Has who wants the folder from now on wait for this holder's end.
  void AnnounceStop() const;

  // The folder, absolute and with symbolic links resolved.
  const std::string& path() const { return path_; }
  // Where each job has a folder of its own, named by its id. It exists.
  std::string JobsFolder() const { return path_ + "/jobs"; }
  // Where the cache of fetched data is; who uses it makes it.
  std::string CacheFolder() const { return path_ + "/cache"; }
  // Where public data sets are, each in a folder of its name; who fetches the first makes it.
  std::string PublicFolder() const { return path_ + "/public"; }
  // Where files live that were uploaded; made when the first are.
  std::string UploadsFolder() const { return path_ + "/uploads"; }
  // Where copies of the database are; Backups makes it.
  std::string BackupsFolder() const { return path_ + "/backups"; }
  // The store's database file; Store::Open makes it.
  std::string DatabasePath() const { return path_ + "/tandem.db"; }

 private:
  StateFolder(std::string path, int lock_file) : path_(std::move(path)), lock_file_(lock_file) {}

  const std::string path_;
  const int lock_file_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_STATE_FOLDER_H_
