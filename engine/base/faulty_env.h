#ifndef TANDEM_ENGINE_BASE_FAULTY_ENV_H_
#define TANDEM_ENGINE_BASE_FAULTY_ENV_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "engine/base/env.h"
#include "engine/base/mutex.h"
#include "engine/base/random_access_env.h"

namespace tandem {

// For tests: a file system in memory that fails at a chosen operation and forgets, at a simulated power cut,
// what was not synced: contents without Sync, and names without SyncDirectory. A Sync that fails has written
// nothing, and what it was to write counts as written from then on, as with a disk's cache: only a later
// write of the same bytes brings them to the disk. Thread-safe. Outlives its files.
class FaultyEnv : public RandomAccessEnv {
 public:
  // What of that which was not synced is there after the machine came back.
  enum class Unsynced {
    kLost,  // Nothing.
    kKept,  // Everything: a process died, and not the machine.
    kSome,  // Each name and write or not, as the seed says, and writes in part.
  };

  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> AppendToFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenRandomAccess(const std::string& path,
                                                                     Open how) override;
  absl::StatusOr<std::string> ReadFile(const std::string& path) override;
  absl::Status RenameFile(const std::string& from, const std::string& to) override;
  absl::Status RemoveFile(const std::string& path) override;
  // A folder is there when a file is in it.
  absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;

  // Lets `count` more changes (creations, appends, writes, truncations, syncs, closings, renames, removals)
  // succeed; later ones fail with `error`.
  void FailAfter(int count, absl::Status error = absl::UnavailableError("the disk is gone"));
  // Lets `count` more changes succeed and the next one fail with `error`; later ones succeed again.
  void FailOnceAfter(int count, absl::Status error);
  // Changes so far.
  int changes() const;
  // The process died, or the machine; changes succeed again. What was open is not to be used any more.
  void CutPower(Unsynced unsynced = Unsynced::kLost, uint64_t seed = 0);

 private:
  // A change of a file's content.
  struct Edit {
    int64_t offset = 0;  // With `truncates`: the new size.
    std::string data;
    bool truncates = false;
  };
  struct Inode {
    std::string content;
    std::string synced;
    // What leads from `synced` to `content`, unless a Sync failed.
    std::vector<Edit> unsynced;
  };
  class File;
  class RandomFile;

  static void Apply(const Edit& edit, std::string* content);
  absl::Status Change() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status EditInode(Inode* inode, Edit edit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status SyncInode(Inode* inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<Inode>> names_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Inode>> durable_names_ ABSL_GUARDED_BY(mutex_);
  int changes_ ABSL_GUARDED_BY(mutex_) = 0;
  int allowed_ ABSL_GUARDED_BY(mutex_) = 1 << 30;
  // What the next change fails with when none is allowed any more, and whether that one alone.
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  bool once_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_FAULTY_ENV_H_
