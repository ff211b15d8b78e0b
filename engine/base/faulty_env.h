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

// For tests: a file system in memory. It fails at a chosen operation. A simulated power cut loses contents
// without Sync and names without SyncDirectory. A failed Sync persists nothing. After a single failed Sync
// (FailOnceAfter), later Syncs do not persist its data either, as on Linux: the caller must write the same
// bytes again. Thread-safe. Must outlive its files.
class FaultyEnv : public RandomAccessEnv {
 public:
  // The fate of unsynced data at a power cut.
  enum class Unsynced {
    kLost,  // All unsynced data is lost.
    kKept,  // All unsynced data survives: only the process died.
    kSome,  // The seed draws whether each name and write survives, whole or in part.
  };

  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  // As CreateFile: names have no permissions here.
  absl::StatusOr<std::unique_ptr<WritableFile>> CreatePrivateFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> AppendToFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenRandomAccess(const std::string& path,
                                                                     Open how) override;
  absl::StatusOr<std::string> ReadFile(const std::string& path) override;
  absl::Status RenameFile(const std::string& from, const std::string& to) override;
  absl::Status RemoveFile(const std::string& path) override;
  // A folder exists if a file is in it.
  absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;

  // Lets `count` more changes succeed. Later changes fail with `error`. Changes are creations, openings to
  // append, writes, truncations, syncs, closings, renames and removals.
  void FailAfter(int count, absl::Status error = absl::UnavailableError("the disk is gone"));
  // Lets `count` more changes succeed. The next change fails with `error`. Later changes succeed again.
  void FailOnceAfter(int count, absl::Status error);
  // Returns the number of successful changes so far.
  int changes() const;
  // Simulates the end of the process or of the machine. Later changes succeed again. Files that were open
  // must not be used any more.
  void CutPower(Unsynced unsynced = Unsynced::kLost, uint64_t seed = 0);

 private:
  // A change of a file's content.
  struct Edit {
    int64_t offset = 0;  // The first byte's offset, or the new size if `truncates`.
    std::string data;
    bool truncates = false;
  };
  struct Inode {
    std::string content;
    std::string synced;
    // The edits that turn `synced` into `content`, unless a Sync failed.
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
  // The error of the next change after `allowed_` changes. If `once_`, only a single change fails.
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  bool once_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_FAULTY_ENV_H_
