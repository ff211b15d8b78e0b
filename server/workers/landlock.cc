#include "server/workers/landlock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/workers/sandbox_support.h"
#include "server/workers/unique_fd.h"

namespace tandem {
namespace {

// From linux/landlock.h, because the build machine's header may be older than another machine's kernel.
constexpr int kPathBeneath = 1;
constexpr uint64_t kExecute = 1 << 0;
constexpr uint64_t kWriteFile = 1 << 1;
constexpr uint64_t kReadFile = 1 << 2;
constexpr uint64_t kReadDir = 1 << 3;
constexpr uint64_t kRemoveDir = 1 << 4;
constexpr uint64_t kRemoveFile = 1 << 5;
constexpr uint64_t kMakeChar = 1 << 6;
constexpr uint64_t kMakeDir = 1 << 7;
constexpr uint64_t kMakeReg = 1 << 8;
constexpr uint64_t kMakeSock = 1 << 9;
constexpr uint64_t kMakeFifo = 1 << 10;
constexpr uint64_t kMakeBlock = 1 << 11;
constexpr uint64_t kMakeSym = 1 << 12;
constexpr uint64_t kRefer = 1 << 13;     // Version 2.
constexpr uint64_t kTruncate = 1 << 14;  // Version 3.
constexpr uint64_t kIoctlDev = 1 << 15;  // Version 5.
constexpr uint64_t kTcp = (1 << 0) | (1 << 1);
constexpr uint64_t kScopeAbstractSocket = 1 << 0;
constexpr uint64_t kScopeSignal = 1 << 1;

struct RulesetAttributes {
  uint64_t files = 0;
  uint64_t network = 0;  // Version 4.
  uint64_t scoped = 0;   // Version 6.
};
struct __attribute__((packed)) PathAttributes {
  uint64_t allowed = 0;
  int32_t parent = -1;
};

// Debian 12's glibc lacks these calls. The numbers are the same on all processors.
constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;

// The rights that a rule for a file may have.
constexpr uint64_t kOfFiles = kWriteFile | kReadFile | kTruncate | kIoctlDev;

absl::Status AddRule(int rules, const std::string& path, uint64_t allowed) {
  const UniqueFd place(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place.valid()) return absl::OkStatus();
  struct stat info = {};
  if (fstat(place.get(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot look at ", path));
  if (!S_ISDIR(info.st_mode)) allowed &= kOfFiles;
  if (allowed == 0) return absl::OkStatus();
  PathAttributes rule;
  rule.allowed = allowed;
  rule.parent = place.get();
  if (syscall(kAddRule, rules, kPathBeneath, &rule, 0) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("Landlock takes no rule for ", path));
}

}  // namespace

absl::Status EnterLandlock(const LandlockRules& rules) {
  const int version = LandlockVersion();
  if (version < 1) return absl::UnimplementedError("the kernel has no Landlock, or it is switched off");
  RulesetAttributes attributes;
  attributes.files = kExecute | kWriteFile | kReadFile | kReadDir | kRemoveDir | kRemoveFile | kMakeChar |
                     kMakeDir | kMakeReg | kMakeSock | kMakeFifo | kMakeBlock | kMakeSym;
  if (version >= 2) attributes.files |= kRefer;
  if (version >= 3) attributes.files |= kTruncate;
  if (version >= 5) attributes.files |= kIoctlDev;
  if (version >= 4 && !rules.tcp) attributes.network = kTcp;
  if (version >= 6) {
    attributes.scoped = kScopeSignal;
    if (!rules.abstract_sockets) attributes.scoped |= kScopeAbstractSocket;
  }
  // An older kernel accepts attributes beyond its own only if they are zero, and here they are.
  const UniqueFd set(static_cast<int>(syscall(kCreateRuleset, &attributes, sizeof(attributes), 0)));
  if (!set.valid()) return absl::ErrnoToStatus(errno, "Landlock takes no rules");
  const uint64_t read = kReadFile | kReadDir;
  const uint64_t write =
      (read | kWriteFile | kRemoveDir | kRemoveFile | kMakeDir | kMakeReg | kRefer | kTruncate | kIoctlDev) &
      attributes.files;
  for (const std::string& path : rules.read) TANDEM_RETURN_IF_ERROR(AddRule(set.get(), path, read));
  for (const std::string& path : rules.write) TANDEM_RETURN_IF_ERROR(AddRule(set.get(), path, write));
  if (syscall(kRestrictSelf, set.get(), 0) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "Landlock cannot be entered");
}

}  // namespace tandem
