#include "server/daemon/address_space.h"

#include <sys/resource.h>

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

// The address space of threads' stacks and the allocator's arenas. Little of it is used.
constexpr rlim_t kLeastBytes = rlim_t{2} << 30;

}  // namespace

absl::Status CheckAddressSpace() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= kLeastBytes) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot start: the address space is limited to ", limit.rlim_cur >> 20,
      " MiB (RLIMIT_AS), and the daemon's threads need ", kLeastBytes >> 20,
      "; raise the limit (ulimit -v), and limit memory by a control group (MemoryMax=) instead"));
}

}  // namespace tandem
