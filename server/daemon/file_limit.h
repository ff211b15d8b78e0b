#ifndef TANDEM_SERVER_DAEMON_FILE_LIMIT_H_
#define TANDEM_SERVER_DAEMON_FILE_LIMIT_H_

namespace tandem {

// Lets this process have as many files open as it may allow itself, to 65,536: each connection is one, and a
// login's soft limit of 1,024 has room for some 500 watchers. A limit that cannot be raised stays as it is.
void RaiseFileLimit();

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_FILE_LIMIT_H_
