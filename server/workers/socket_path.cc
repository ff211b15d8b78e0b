#include "server/workers/socket_path.h"

#include <openssl/sha.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

std::string Fingerprint(absl::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), 8));
}

absl::Status MakePrivateFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the folder ", path));
  }
  struct stat found;
  if (lstat(path.c_str(), &found) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot look at ", path));
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        " must be a folder that belongs to the daemon's user and that no one else may enter (mode 0700)"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> PrepareSocketPath(const std::string& state_folder) {
  std::string folder = absl::StrCat(state_folder, "/workers");
  if (folder.size() + sizeof("/socket") > sizeof(sockaddr_un::sun_path)) {
    // Not $XDG_RUNTIME_DIR: the next daemon may be started where that is not set.
    folder = absl::StrCat("/tmp/tandem-", geteuid(), "-", Fingerprint(state_folder));
  }
  TANDEM_RETURN_IF_ERROR(MakePrivateFolder(folder));
  return folder + "/socket";
}

std::string UnixTarget(const std::string& path) {
  std::string target = "unix:";
  for (const char c : path) {
    if (absl::ascii_isalnum(c) || absl::StrContains("/-._~", c)) {
      target += c;
    } else {
      absl::StrAppendFormat(&target, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return target;
}

}  // namespace tandem
