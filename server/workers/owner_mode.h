#ifndef TANDEM_SERVER_WORKERS_OWNER_MODE_H_
#define TANDEM_SERVER_WORKERS_OWNER_MODE_H_

#include <string>

namespace tandem {

// Restores this account's right to read and write its own file or folder, which a worker may have closed.
// Does not follow a symbolic link. Does nothing for other types or a missing path.
void RestoreOwnerMode(const std::string& path);
// The same for an open file, even one opened with O_PATH.
void RestoreOwnerMode(int fd);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_OWNER_MODE_H_
