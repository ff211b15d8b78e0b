#ifndef TANDEM_SERVER_WORKERS_OWNER_MODE_H_
#define TANDEM_SERVER_WORKERS_OWNER_MODE_H_

#include <string>

namespace tandem {

// Lets this account read and write a file or folder of its own again, that a worker may have closed to it. A
// symbolic link is not followed. No effect where the path is neither, or is not there.
void RestoreOwnerMode(const std::string& path);
// Likewise of what is open, if only by O_PATH.
void RestoreOwnerMode(int fd);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_OWNER_MODE_H_
