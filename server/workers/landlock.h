#ifndef TANDEM_SERVER_WORKERS_LANDLOCK_H_
#define TANDEM_SERVER_WORKERS_LANDLOCK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tandem {

// The kernel's Landlock (see LandlockVersion): what a process, and all that it starts, may do with files, for
// good.

struct LandlockRules {
  // Files and folders, with all that is below them; one that is not there is passed over.
  std::vector<std::string> read;
  // The same, to read and write and, in folders, to make and remove files, folders and names of them; never
  // to make symbolic links, sockets or devices. Devices are used with ioctl too.
  std::vector<std::string> write;
  // Whether TCP may be used (from version 4 on; before, it may).
  bool tcp = true;
  // Whether sockets of other processes that have an abstract name may be connected to (from 6 on).
  bool abstract_sockets = true;
};

// Holds the calling thread, and threads that it starts from here on, to the rules: call it while there is
// one thread alone. Nothing can be executed any more, and other processes are not signalled (from 6 on). The
// calling thread must have no_new_privs. UNIMPLEMENTED: the kernel has no Landlock. Other errors: the kernel
// refused.
absl::Status EnterLandlock(const LandlockRules& rules);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_LANDLOCK_H_
