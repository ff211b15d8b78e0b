#include "server/workers/sandbox_support.h"

#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace tandem {

int LandlockVersion() {
  // Debian 12's glibc lacks landlock_create_ruleset and LANDLOCK_CREATE_RULESET_VERSION.
  constexpr long kCreateRuleset = 444;
  constexpr unsigned kVersionFlag = 1;
  const long version = syscall(kCreateRuleset, nullptr, size_t{0}, kVersionFlag);
  return version < 0 ? 0 : static_cast<int>(version);
}

bool HasSyscallFilter() {
  const uint32_t action = SECCOMP_RET_ERRNO;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

std::string MissingOfSandbox() {
  std::string missing;
  if (LandlockVersion() == 0) {
    missing = "the kernel has no Landlock (Linux 5.13, and 'landlock' in its lsm= parameter)";
  }
  if (!HasSyscallFilter()) missing += missing.empty() ? "" : "; ";
  if (!HasSyscallFilter()) missing += "the kernel filters no system calls (CONFIG_SECCOMP_FILTER)";
  return missing;
}

}  // namespace tandem
