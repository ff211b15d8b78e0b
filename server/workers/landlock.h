#ifndef TANDEM_SERVER_WORKERS_LANDLOCK_H_
#define TANDEM_SERVER_WORKERS_LANDLOCK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tandem {

// The kernel's Landlock (see LandlockVersion) restricts for good how a process, and everything that it
// starts, may use files.

struct LandlockRules {
  // Files, and folders with everything below them. Missing ones are skipped.
  std::vector<std::string> read;
  // The same, for reading and writing. In a folder, files, folders and names of files may be created and
  // removed, but no symbolic links, sockets, FIFOs or devices. Also allows ioctl on devices.
  std::vector<std::string> write;
  // Allows TCP. Restricted only from version 4 on.
  bool tcp = true;
  // Allows connections to other processes' abstract sockets. Restricted only from version 6 on.
  bool abstract_sockets = true;
};

// Restricts the calling thread and its later threads. Call it while the process has one thread. Afterwards
// the process can execute nothing, and can signal no other process (from version 6 on). The calling thread
// must have no_new_privs. UNIMPLEMENTED: the kernel has no Landlock. Other errors: the kernel refused.
absl::Status EnterLandlock(const LandlockRules& rules);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_LANDLOCK_H_
