#ifndef TANDEM_SERVER_RPC_FILE_WATCHER_H_
#define TANDEM_SERVER_RPC_FILE_WATCHER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "engine/base/mutex.h"

namespace tandem {

// Reports changes of files (inotify), so that readers need not poll. Thread-safe.
class FileWatcher {
 public:
  // INTERNAL: the system provides no inotify instance (limit fs.inotify.max_user_instances).
  static absl::StatusOr<std::unique_ptr<FileWatcher>> Create();
  ~FileWatcher();
  FileWatcher(const FileWatcher&) = delete;
  FileWatcher& operator=(const FileWatcher&) = delete;

  // Calls `changed` after the file `name` in `folder` was created or written, perhaps more often than needed.
  // Runs on the watcher's thread; must not block. May still be called once while Remove runs. Returns a
  // number for Remove. NOT_FOUND: no such folder. RESOURCE_EXHAUSTED: fs.inotify.max_user_watches.
  absl::StatusOr<int64_t> Add(const std::string& folder, const std::string& name,
                              std::function<void()> changed);
  void Remove(int64_t number);

 private:
  struct Watch {
    int descriptor = 0;
    std::string name;
    std::shared_ptr<std::function<void()>> changed;
  };

  FileWatcher(int inotify, int wake) : inotify_(inotify), wake_(wake), thread_([this] { Run(); }) {}
  void Run();

  const int inotify_;
  const int wake_;
  Mutex mutex_;
  std::map<int64_t, Watch> watches_ ABSL_GUARDED_BY(mutex_);
  int64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_FILE_WATCHER_H_
