#ifndef TANDEM_SERVER_STORE_STATE_FOLDER_H_
#define TANDEM_SERVER_STORE_STATE_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// A daemon's state folder, locked by this process. The lock is on the open file "daemon.lock". It ends with
// the object or with the process, even after a crash, and no other program inherits it. Immutable after Lock,
// so thread-safe.
class StateFolder {
 public:
  // Creates the folder if missing (with its parents, for its owner alone), and locks it. If the holder
  // announced its stop, waits up to 20 s. If the holder is dead, waits up to 5 s, because a child may hold
  // the lock for a moment longer.
  //
  // FAILED_PRECONDITION, with the folder: other users may write to the folder, so they could replace the
  // database. Or another daemon holds the folder; the message has its process id. INVALID_ARGUMENT if `path`
  // is empty. PERMISSION_DENIED, NOT_FOUND and others: the system refused; the message names the path.
  static absl::StatusOr<std::unique_ptr<StateFolder>> Lock(absl::string_view path);

  ~StateFolder();
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  // Makes the folders that a cluster's nodes need links into `shared`: jobs, uploads, the cache, public data
  // and kept weights. `shared` must be a folder that the nodes see at the same path. Creates missing folders
  // in `shared`, and copies nothing. Returns `shared` without symbolic links. Errors as CheckShare.
  // Idempotent.
  absl::StatusOr<std::string> ShareThrough(const std::string& shared) const;
  // Checks if ShareThrough would succeed for the state folder `state`, which need not exist. Changes nothing.
  // FAILED_PRECONDITION if a folder in `state` has content or links to another place, if another state folder
  // uses `shared`, or if `shared` is not a folder. NOT_FOUND, PERMISSION_DENIED and others: the system
  // refused. The message says how to mend it.
  static absl::Status CheckShare(const std::string& state, const std::string& shared);

  // Tells later callers of Lock to wait for this holder's end.
  void AnnounceStop() const;

  // Returns the absolute folder, without symbolic links.
  const std::string& path() const { return path_; }
  // Returns the parent of the jobs' folders, which are named by id. Exists.
  std::string JobsFolder() const { return path_ + "/jobs"; }
  // Returns the folder of the cache. Its user creates it.
  std::string CacheFolder() const { return path_ + "/cache"; }
  // Returns the parent of the public data sets' folders, which are named by set. Created with the first set.
  std::string PublicFolder() const { return path_ + "/public"; }
  // Returns the folder of uploaded files. Created with the first upload.
  std::string UploadsFolder() const { return path_ + "/uploads"; }
  // Returns the folder of the database's backups. Backups creates it.
  std::string BackupsFolder() const { return path_ + "/backups"; }
  // Returns the path of the database. Store::Open creates it.
  std::string DatabasePath() const { return path_ + "/tandem.db"; }

 private:
  StateFolder(std::string path, int lock_file) : path_(std::move(path)), lock_file_(lock_file) {}

  const std::string path_;
  const int lock_file_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_STATE_FOLDER_H_
