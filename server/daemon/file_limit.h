#ifndef TANDEM_SERVER_DAEMON_FILE_LIMIT_H_
#define TANDEM_SERVER_DAEMON_FILE_LIMIT_H_

namespace tandem {

// Raises this process's soft limit on open files to its hard limit, at most 65,536. Each connection needs a
// file, and a login's soft limit of 1,024 suffices for about 500 watchers. Ignores errors.
void RaiseFileLimit();

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_FILE_LIMIT_H_
