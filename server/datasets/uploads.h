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

// The files that clients upload: each upload in a folder of its own, until a data set is made of it or it
// expires; then as the set's, until that is removed. Thread-safe; methods read and write files, and block.
class Uploads {
 public:
  struct Options {
    // Absolute; made where it is missing.
    std::string folder;
    // Bytes of one upload; 0: any number.
    int64_t most_bytes_each = int64_t{256} << 30;
    // Bytes of all, those of data sets included; 0: as the disk has.
    int64_t most_bytes = 0;
    // Bytes of the disk that uploads leave to others.
    int64_t least_free = int64_t{1} << 30;
    // That no set was made of yet: of all users, and of each. Of the administrator's, who is not kept out by
    // others', there may be as many as of all.
    int most_uploads = 100;
    int most_uploads_each = 20;
    // After which an upload that does not go on is removed.
    absl::Duration expiry = absl::Hours(7 * 24);
    // When the database was last restored. Of an upload that was begun before, nobody can say whether a set
    // was made of it: until one is, or somebody deletes it, it stays. Infinite past: never.
    absl::Time restored = absl::InfinitePast();
    // Free bytes of the disk that holds a folder; null: the system's answer.
    std::function<absl::StatusOr<int64_t>(const std::string& folder)> free_bytes;
    // Removes a folder with all that is in it; null: the system does.
    std::function<absl::Status(const std::string& folder)> remove_folder;
  };

  // What a data set was made of.
  struct Owned {
    // Of its files. Where their folder can be read, Open adds what so many files take beside that.
    int64_t bytes = 0;
    // Whose the set is.
    std::string user;
  };

  // Decides on an upload that would be made: by the bytes that its user's uploads and data sets take so far,
  // as BytesOf says them.
  // Called with everybody else's uploads held up: it must not wait, nor call this object.
  using Allow = std::function<absl::Status(int64_t used)>;

  // A call that brings files. Thread-compatible. Destroying it ends it without making durable what came.
  class Call;

  // Reads what is there, and goes on with removals that were cut off or failed. `owned`: the uploads that
  // data sets were made of, by id; of others, what cannot be read is removed, as is what has expired; but
  // nothing from before a restoration. Removals that fail, now or later, are told to the log, with the folder
  // and why.
  static absl::StatusOr<std::unique_ptr<Uploads>> Open(Options options, Env* env, const Clock* clock,
                                                       std::map<std::string, Owned> owned);
  ~Uploads();
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  // These do what DatasetService's methods of their names do, for the user that `wanted` names and without a
  // look at who may; `id` is the upload's without "uploads/". `allow` is asked where a new upload is to be
  // made, and its error is the call's; of several at once each counts those before it. Null: all are allowed.
  // List has none that is still being made, and waits for none.
  absl::StatusOr<v1::Upload> Create(const v1::Upload& wanted, const Allow& allow = nullptr);
  absl::StatusOr<v1::Upload> Get(const std::string& id);
  std::vector<v1::Upload> List();
  // Those from before the restoration, which do not expire and have no expire_time.
  std::vector<v1::Upload> FromBeforeRestoration();
  // The ids of folders from before the restoration that cannot be read, and so are in no list.
  std::vector<std::string> Unreadable();
  absl::Status Delete(const std::string& id);
  // Upload.user of one that no data set was made of. NOT_FOUND.
  absl::StatusOr<std::string> OwnerOf(const std::string& id);
  // A new call takes over from one before it, which then gets ABORTED: its client may be gone unnoticed.
  absl::StatusOr<std::unique_ptr<Call>> Begin(const std::string& id);

  // For the making of a data set: the upload, if it is whole, which from now on is not removed, found or
  // listed; its bytes count as its user's all the while. NOT_FOUND; FAILED_PRECONDITION: it is not whole, or
  // another set is being made of it. Then either GiveBack; or Keep, when the set is made, with whose that is,
  // and Remove when that is removed.
  absl::StatusOr<v1::Upload> Claim(const std::string& id);
  void GiveBack(const std::string& id);
  void Keep(const std::string& id, const std::string& user);
  // Removes a data set's files.
  void Remove(const std::string& id);

  // Removes what has expired; done from time to time in any case.
  void RemoveExpired();

  // Bytes that uploads take of the disk, or will when they are whole, those of data sets included: of each
  // file its bytes and a block.
  int64_t used_bytes();

  // Likewise of a user's.
  int64_t BytesOf(const std::string& user);

  // Where an upload's files are, absolute.
  std::string FilesFolder(const std::string& id) const { return UploadFolder::FilesFolder(FolderOf(id)); }
  const std::string& folder() const { return options_.folder; }

 private:
  enum class State { kMaking, kOpen, kClaimed, kGone };
  // An upload that no set was made of. Its lock may be held for long, as while its folder is made or the
  // begin of a large file is read: never taken under the map's.
  struct Entry {
    Mutex mutex;
    // Null where it is kMaking, or could not be made, and so is kGone.
    std::unique_ptr<UploadFolder> files ABSL_GUARDED_BY(mutex);
    // When something last came, in microseconds by Clock::Elapsed(): a clock that is set ahead makes none
    // old.
    std::atomic<int64_t> active = 0;
    // As of the last time that what came was made durable.
    std::atomic<int64_t> bytes_received = 0;
    std::atomic<int64_t> files_received = 0;
    // The number of the newest call; older ones are over.
    int64_t call ABSL_GUARDED_BY(mutex) = 0;
    // Whether its folder is being made, all the while under the lock; it goes on; a set is made of it; or it
    // is to be removed, and perhaps is. Changed under the lock.
    std::atomic<State> state = State::kMaking;
    // As it was declared; never changes.
    v1::Upload declared;
    // Whether it is from before the restoration; never changes.
    bool stays = false;
  };

  Uploads(Options options, Env* env, const Clock* clock);

  void Restore(const std::string& id);
  // The upload of the same files and user that there is, which may end at any moment, or a new one.
  absl::StatusOr<std::shared_ptr<Entry>> FindOrMake(const v1::Upload& wanted, const Allow& allow);
  // Likewise, where the new one would be `made`, which gets its place if it may.
  absl::StatusOr<std::shared_ptr<Entry>> FindOrAdd(const std::shared_ptr<Entry>& made, const Allow& allow);
  absl::StatusOr<std::shared_ptr<Entry>> Find(const std::string& id);
  // Counts what has become durable.
  static void SetReceived(const v1::Upload& progress, Entry& entry);
  absl::Status CheckSpace(const v1::Upload& wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckNumber(const std::string& user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t BytesOfLocked(const std::string& user) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<int64_t> FreeBytes() const;
  // Its progress, all that came made durable.
  absl::StatusOr<v1::Upload> Progress(const std::string& id, Entry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(entry.mutex);
  // Makes durable what came; an upload that turns out to be another than declared is removed.
  absl::Status Sync(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(entry.mutex);
  int64_t ElapsedMicros() const { return absl::ToInt64Microseconds(clock_->Elapsed()); }
  bool IsFromBeforeRestoration(absl::Time time) const { return time <= options_.restored; }
  void RemoveFolder(const std::string& id);
  // Tells of a failure; the next daemon tries again.
  void RemoveAll(const std::string& folder) const;
  void Forget(const std::string& id);
  std::string FolderOf(const std::string& id) const { return options_.folder + "/" + id; }
  void Sweep();

  const Options options_;
  Env* const env_;
  const Clock* const clock_;

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> uploads_ ABSL_GUARDED_BY(mutex_);
  // Those that are data sets' or are becoming so.
  std::map<std::string, Owned> owned_ ABSL_GUARDED_BY(mutex_);
  // Those that are becoming so.
  std::map<std::string, std::shared_ptr<Entry>> claimed_ ABSL_GUARDED_BY(mutex_);
  // From before the restoration, too.
  std::vector<std::string> unreadable_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread sweeper_;
};

class Uploads::Call {
 public:
  // Takes in a message but for its name. Errors as UploadFolder::Take; ABORTED, too, where another call took
  // over; NOT_FOUND: the upload was removed.
  absl::Status Take(const v1::UploadFilesRequest& piece);
  // Makes durable what came, and says how the upload stands.
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
  // What came since the disk's free space was looked at, as far as it takes space.
  int64_t unchecked_bytes_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DATASETS_UPLOADS_H_
