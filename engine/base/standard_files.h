#ifndef TANDEM_ENGINE_BASE_STANDARD_FILES_H_
#define TANDEM_ENGINE_BASE_STANDARD_FILES_H_

#include <fcntl.h>
#include <unistd.h>

namespace tandem {

// Opens each of the descriptors 0, 1 and 2 that is closed, so that no other file gets its number. Otherwise
// the log could become content of this file. Reads of descriptor 0 and writes to 1 and 2 then fail with
// EBADF. Call this first in a program's main, before other threads start.
inline void OpenClosedStandardFiles() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) != -1) continue;
    // open returns the lowest closed descriptor, which is this one.
    if (open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) == -1) return;
  }
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_STANDARD_FILES_H_
