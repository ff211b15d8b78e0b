#ifndef TANDEM_SERVER_DATASETS_UPLOADS_H_
#define TANDEM_SERVER_DATASETS_UPLOADS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "engine/base/mutex.h"
#include "server/datasets/upload_folder.h"
#include "tandem/v1/dataset_service.pb.h"

namespace tandem {

// The files that clients upload. Each upload has its own folder until it expires or becomes a data set. The
// set then owns the files until the set is removed. Thread-safe. The methods read and write files, and so
// block.
class Uploads {
 public:
  struct Options {
    // Absolute. Created if missing.
    std::string folder;
    // The most bytes of one upload. 0: no limit.
    int64_t most_bytes_each = int64_t{256} << 30;
    // The most bytes of all uploads and data sets. 0: limited by the disk.
    int64_t most_bytes = 0;
    // Bytes of the disk that uploads must leave free.
    int64_t least_free = int64_t{1} << 30;
    // The most unfinished uploads of all users, and of each user. The administrator may have `most_uploads`,
    // and other users' uploads do not count against the administrator.
    int most_uploads = 100;
    int most_uploads_each = 20;
    // The time after which an idle upload is removed.
    absl::Duration expiry = absl::Hours(7 * 24);
    // The time of the database's last restoration; infinite past if never. A data set may own an upload from
    // before, although the restored database has no such set. So the upload stays until a set takes it or
    // somebody deletes it.
    absl::Time restored = absl::InfinitePast();
    // Returns the free bytes of a folder's disk. Null: asks the system.
    std::function<absl::StatusOr<int64_t>(const std::string& folder)> free_bytes;
    // Removes a folder and its content. Null: uses the system.
    std::function<absl::Status(const std::string& folder)> remove_folder;
  };

  // An upload that a data set owns.
  struct Owned {
    // The bytes of its files. If the folder can be read, Open replaces them by the disk space.
    int64_t bytes = 0;
    // The set's owner.
    std::string user;
  };

  // Decides if a new upload may be created. `used` is the disk space of the user's uploads and data sets, as
  // BytesOf. Runs under the lock of all uploads, so it must not block or call this object.
  using Allow = std::function<absl::Status(int64_t used)>;

  // A call that sends files. Thread-compatible. Destruction ends the call without a sync.
  class Call;

  // Reads the folder, and completes interrupted and failed removals. `owned` are the uploads that data sets
  // own, by id. Removes unreadable and expired uploads, except uploads from before a restoration. Logs each
  // failed removal, now or later, with folder and reason.
  static absl::StatusOr<std::unique_ptr<Uploads>> Open(Options options, Env* env, const Clock* clock,
                                                       std::map<std::string, Owned> owned);
  ~Uploads();
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  // These methods do the work of DatasetService's methods of the same names, without checking the caller's
  // rights. `wanted` names the user. `id` is an upload's name without "uploads/".
  //
  // Create calls `allow` before it creates a new upload, and returns its error. Concurrent calls count each
  // other's uploads. A null `allow` permits all. List neither shows nor blocks on uploads in creation.
  absl::StatusOr<v1::Upload> Create(const v1::Upload& wanted, const Allow& allow = nullptr);
  absl::StatusOr<v1::Upload> Get(const std::string& id);
  std::vector<v1::Upload> List();
  // Returns the uploads from before the restoration. They do not expire and have no expire_time.
  std::vector<v1::Upload> FromBeforeRestoration();
  // Returns the ids of unreadable folders from before the restoration. No list shows them.
  std::vector<std::string> Unreadable();
  absl::Status Delete(const std::string& id);
  // Returns the user of an upload that no data set owns. NOT_FOUND otherwise.
  absl::StatusOr<std::string> OwnerOf(const std::string& id);
  // A new call replaces the upload's earlier call, which gets ABORTED: its client may be gone unnoticed.
  absl::StatusOr<std::unique_ptr<Call>> Begin(const std::string& id);

  // Returns the absolute path of a file of a whole upload that no data set owns. `path` is the file's path in
  // the upload. The file never changes in place, and the upload does not expire soon. INVALID_ARGUMENT, as
  // the predicate of a field: no such upload or file, the upload is not whole, or `path` is not inside the
  // upload.
  absl::StatusOr<std::string> FindFile(const std::string& id, const std::string& path);

  // Claims a whole upload for a new data set. The upload is then neither removed, found nor listed, and its
  // bytes still count as its user's. Call GiveBack if the set is not created. Otherwise call Keep with the
  // set's owner, and Remove when the set is removed. NOT_FOUND. FAILED_PRECONDITION: the upload is not whole,
  // or is already claimed.
  absl::StatusOr<v1::Upload> Claim(const std::string& id);
  void GiveBack(const std::string& id);
  void Keep(const std::string& id, const std::string& user);
  // Removes the files of a data set.
  void Remove(const std::string& id);

  // Removes expired uploads. Also runs periodically.
  void RemoveExpired();

  // Returns the disk space of all whole uploads and data sets, in bytes: each file's bytes and a block.
  // Unfinished uploads count as if whole.
  int64_t used_bytes();

  // The same for one user.
  int64_t BytesOf(const std::string& user);

  // Returns the absolute path of an upload's files.
  std::string FilesFolder(const std::string& id) const { return UploadFolder::FilesFolder(FolderOf(id)); }
  const std::string& folder() const { return options_.folder; }

 private:
  enum class State { kMaking, kOpen, kClaimed, kGone };
  // An upload that no set owns. Its lock may be held for long, for example while its folder is created or a
  // large file is read. Never lock it while holding `mutex_`.
  struct Entry {
    Mutex mutex;
    // Null in state kMaking, and in state kGone if the creation failed.
    std::unique_ptr<UploadFolder> files ABSL_GUARDED_BY(mutex);
    // The time of the last piece, in microseconds of Clock::Elapsed(), so that a jump of the clock expires no
    // upload.
    std::atomic<int64_t> active = 0;
    // The values at the last sync.
    std::atomic<int64_t> bytes_received = 0;
    std::atomic<int64_t> files_received = 0;
    // The number of the newest call. Earlier calls have ended.
    int64_t call ABSL_GUARDED_BY(mutex) = 0;
    // kMaking: its folder is being created, under the lock. kOpen: it accepts pieces. kClaimed: a set is
    // being created. kGone: it is removed or will be. Changes only under the lock.
    std::atomic<State> state = State::kMaking;
    // The declaration. Constant.
    v1::Upload declared;
    // True if the upload is from before the restoration. Constant.
    bool stays = false;
  };

  Uploads(Options options, Env* env, const Clock* clock);

  void Restore(const std::string& id);
  // Returns an existing upload of the same files and user, or a new upload. An existing upload may end at any
  // moment.
  absl::StatusOr<std::shared_ptr<Entry>> FindOrMake(const v1::Upload& wanted, const Allow& allow);
  // The same, with `made` as the new upload. Adds `made` if its limits permit.
  absl::StatusOr<std::shared_ptr<Entry>> FindOrAdd(const std::shared_ptr<Entry>& made, const Allow& allow);
  absl::StatusOr<std::shared_ptr<Entry>> Find(const std::string& id);
  // Updates the counts of durable bytes and files.
  static void SetReceived(const v1::Upload& progress, Entry& entry);
  absl::Status CheckSpace(const v1::Upload& wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckNumber(const std::string& user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t BytesOfLocked(const std::string& user) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<int64_t> FreeBytes() const;
  // Syncs the upload, and returns its progress.
  absl::StatusOr<v1::Upload> Progress(const std::string& id, Entry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(entry.mutex);
  // Syncs the upload. If its files differ from the declaration, the upload is removed.
  absl::Status Sync(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(entry.mutex);
  int64_t ElapsedMicros() const { return absl::ToInt64Microseconds(clock_->Elapsed()); }
  bool IsFromBeforeRestoration(absl::Time time) const { return time <= options_.restored; }
  void RemoveFolder(const std::string& id);
  // Logs an error. The next daemon tries again.
  void RemoveAll(const std::string& folder) const;
  void Forget(const std::string& id);
  std::string FolderOf(const std::string& id) const { return options_.folder + "/" + id; }
  void Sweep();

  const Options options_;
  Env* const env_;
  const Clock* const clock_;

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> uploads_ ABSL_GUARDED_BY(mutex_);
  // Uploads that data sets own, or that are claimed.
  std::map<std::string, Owned> owned_ ABSL_GUARDED_BY(mutex_);
  // The claimed uploads.
  std::map<std::string, std::shared_ptr<Entry>> claimed_ ABSL_GUARDED_BY(mutex_);
  // Unreadable folders from before the restoration.
  std::vector<std::string> unreadable_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread sweeper_;
};

class Uploads::Call {
 public:
  // Accepts a message; ignores its name. Errors as UploadFolder::Take. ABORTED also if another call replaced
  // this call. NOT_FOUND: the upload was removed.
  absl::Status Take(const v1::UploadFilesRequest& piece);
  // Syncs the upload, and returns its progress.
  absl::StatusOr<v1::Upload> Finish();

 private:
  friend class Uploads;
  Call(Uploads* uploads, std::string id, std::shared_ptr<Entry> entry, int64_t number)
      : uploads_(uploads), id_(std::move(id)), entry_(std::move(entry)), number_(number) {}
  absl::Status CheckFree() const;
  absl::Status CheckGoesOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(entry_->mutex);

  Uploads* const uploads_;
  const std::string id_;
  const std::shared_ptr<Entry> entry_;
  const int64_t number_;
  // The disk space of the pieces since the last check of free space.
  int64_t unchecked_bytes_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_UPLOADS_H_
