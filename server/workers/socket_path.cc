#include "server/workers/socket_path.h"

#include <openssl/sha.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

std::string Fingerprint(absl::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), 8));
}

// ALREADY_EXISTS: the name belongs to another user or is no folder.
absl::Status MakePrivateFolder(const std::string& path) {
  TANDEM_RETURN_IF_ERROR(EnsureOwnerFolder(path));
  struct stat found;
  if (lstat(path.c_str(), &found) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect ", path));
  const std::string wanted =
      absl::StrCat("cannot use ", path,
                   ": it must be a folder of the daemon's user that no other user may enter (mode 0700)");
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid()) return absl::AlreadyExistsError(wanted);
  if ((found.st_mode & 077) != 0) return absl::FailedPreconditionError(wanted);
  return absl::OkStatus();
}

// The prefix of all such folders in /tmp.
std::string ShortPrefix() { return absl::StrCat("/tmp/tandem-", geteuid(), "-"); }

// Returns the folder that an earlier start noted, or "". A note for another state folder came with a copy of
// that folder, whose daemon may be running.
std::string NotedFolder(const std::string& note, const std::string& state_folder) {
  std::ifstream file(note);
  std::string folder, of;
  std::getline(file, folder);
  std::getline(file, of);
  if (of != Fingerprint(state_folder)) return "";
  const std::string prefix = ShortPrefix();
  const bool is_one = absl::StartsWith(folder, prefix) && folder.size() <= prefix.size() + 16 &&
                      !absl::StrContains(folder.substr(prefix.size()), "/");
  return is_one ? folder : "";
}

// Returns a folder with a short path in /tmp, where other users may have taken any name that they can guess.
absl::StatusOr<std::string> PrepareShortFolder(const std::string& state_folder) {
  const std::string note = state_folder + "/socket-folder";
  std::string folder = NotedFolder(note, state_folder);
  // Not $XDG_RUNTIME_DIR, because it may be unset for the next daemon.
  if (folder.empty()) folder = absl::StrCat(ShortPrefix(), Fingerprint(state_folder));
  const absl::Status made = MakePrivateFolder(folder);
  if (made.ok()) return folder;
  if (!absl::IsAlreadyExists(made)) return made;
  folder = ShortPrefix() + "XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the folder ", folder));
  }
  TANDEM_RETURN_IF_ERROR(WriteFileAtomically(Env::Real(), note, [&](WritableFile& file) {
    return file.Append(absl::StrCat(folder, "\n", Fingerprint(state_folder), "\n"));
  }));
  return folder;
}

}  // namespace

absl::StatusOr<std::string> PrepareSocketPath(const std::string& state_folder) {
  std::string folder = absl::StrCat(state_folder, "/workers");
  if (folder.size() + sizeof("/socket") > sizeof(sockaddr_un::sun_path)) {
    TANDEM_ASSIGN_OR_RETURN(folder, PrepareShortFolder(state_folder));
    return folder + "/socket";
  }
  const absl::Status made = MakePrivateFolder(folder);
  if (absl::IsAlreadyExists(made)) return absl::FailedPreconditionError(made.message());
  TANDEM_RETURN_IF_ERROR(made);
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
