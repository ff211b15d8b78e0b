#ifndef TANDEM_SERVER_STORE_ENV_VFS_H_
#define TANDEM_SERVER_STORE_ENV_VFS_H_

#include <memory>
#include <string>

#include "engine/base/random_access_env.h"

namespace tandem {

// SQLite's file system over an Env, so that tests can fail every write, sync, truncation and removal of a
// database and lose what was not synced. Databases are opened in it by its name. It does what SQLite's own
// does on this system: the same sync of a folder after a log was created, the same promises about sectors.
// Locks and the index of the write-ahead log live in memory, as all connections are of this process. The
// daemon takes SQLite's own, which has nothing between it and the system.
//
// Thread-safe. Outlives its connections; `env` outlives it.
class EnvVfs {
 public:
  // `name` is of no other that lives.
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
