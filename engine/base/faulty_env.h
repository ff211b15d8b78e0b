#ifndef TANDEM_ENGINE_BASE_FAULTY_ENV_H_
#define TANDEM_ENGINE_BASE_FAULTY_ENV_H_

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "engine/base/env.h"
#include "engine/base/mutex.h"

namespace tandem {

// For tests: a file system in memory that fails at a chosen operation and forgets, at a simulated power cut,
// what was not synced: contents without Sync, and names without SyncDirectory. Thread-safe. Outlives its
// files.
class FaultyEnv : public Env {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> AppendToFile(const std::string& path) override;
  absl::StatusOr<std::string> ReadFile(const std::string& path) override;
  absl::Status RenameFile(const std::string& from, const std::string& to) override;
  absl::Status RemoveFile(const std::string& path) override;
  // A folder is there when a file is in it.
  absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;

  // Lets `count` more changes (creations, appends, syncs, closings, renames, removals) succeed; later ones
  // fail.
  void FailAfter(int count);
  // Changes so far.
  int changes() const;
  // Drops what is not durable, and lets changes succeed again.
  void CutPower();

 private:
  struct Inode {
    std::string content;
    std::string synced;
  };
  class File;

  absl::Status Change() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<Inode>> names_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Inode>> durable_names_ ABSL_GUARDED_BY(mutex_);
  int changes_ ABSL_GUARDED_BY(mutex_) = 0;
  int allowed_ ABSL_GUARDED_BY(mutex_) = 1 << 30;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_FAULTY_ENV_H_
