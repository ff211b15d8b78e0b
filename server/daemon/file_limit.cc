#include "server/daemon/file_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace tandem {

void RaiseFileLimit() {
  constexpr rlim_t kMost = 65536;  // The same as in deploy/systemd/tandem.service.
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= kMost) return;
  files.rlim_cur = std::min(kMost, files.rlim_max);
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace tandem
