#ifndef TANDEM_SERVER_STORE_ENV_VFS_H_
#define TANDEM_SERVER_STORE_ENV_VFS_H_

#include <memory>
#include <string>

#include "engine/base/random_access_env.h"

namespace tandem {

// SQLite's file system over an Env. Tests use it to fail any write, sync, truncation or removal of a
// database, and to lose unsynced data. Databases are opened in it by its name. It behaves like SQLite's own
// file system on this system: the same sync of the folder after a log was created, and the same promises
// about sectors. Locks and the write-ahead log's index are in memory, because all connections belong to this
// process. The daemon uses SQLite's own file system, to have nothing between SQLite and the system.
//
// Thread-safe. Must outlive its connections. `env` must outlive it.
class EnvVfs {
 public:
  // No other live EnvVfs may have the same name.
  EnvVfs(std::string name, RandomAccessEnv* env);
  ~EnvVfs();
  EnvVfs(const EnvVfs&) = delete;
  EnvVfs& operator=(const EnvVfs&) = delete;

  const std::string& name() const;

 private:
  struct Registered;

  const std::unique_ptr<Registered> registered_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_ENV_VFS_H_
