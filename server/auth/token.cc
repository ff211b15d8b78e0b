#include "server/auth/token.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr int kTokenBytes = 32;
constexpr int kMinCharacters = 16;
constexpr int kMaxCharacters = 256;

absl::Status FileError(absl::string_view what, const std::string& path, int error) {
  return absl::InternalError(absl::StrCat("cannot ", what, " the token file ", path, ": ", strerror(error)));
}

absl::StatusOr<std::string> ReadToken(int fd, const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return FileError("inspect", path, errno);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot use the token file ", path, ": it is not a regular file"));
  }
  if ((info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("cannot use the token file %s: its mode %04o lets other users read it; chmod 600 %s "
                        "if nobody read it, otherwise remove it, and the next start makes a new one",
                        path, info.st_mode & 07777, path));
  }
  char buffer[kMaxCharacters + 3];
  const ssize_t got = read(fd, buffer, sizeof(buffer));
  if (got < 0) return FileError("read", path, errno);
  const absl::string_view token = absl::StripAsciiWhitespace(absl::string_view(buffer, got));
  if (token.size() < kMinCharacters || token.size() > kMaxCharacters ||
      !std::all_of(token.begin(), token.end(), [](char c) { return absl::ascii_isgraph(c); })) {
    return absl::FailedPreconditionError(
        absl::StrFormat("cannot use the token file %s: it has no token (%d to %d characters of visible "
                        "ASCII); remove it, and the next start makes a new one",
                        path, kMinCharacters, kMaxCharacters));
  }
  return std::string(token);
}

}  // namespace

absl::StatusOr<std::string> RandomToken() {
  char bytes[kTokenBytes];
  if (getentropy(bytes, sizeof(bytes)) != 0) {
    return absl::InternalError(
        absl::StrCat("cannot make a token: the system gives no random bytes: ", strerror(errno)));
  }
  // Without padding.
  return absl::WebSafeBase64Escape(absl::string_view(bytes, sizeof(bytes)));
}

absl::StatusOr<std::string> LoadToken(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const absl::Status error = FileError("read", path, errno);
    return errno == ENOENT ? absl::NotFoundError(error.message()) : error;
  }
  absl::Cleanup closer = [fd] { close(fd); };
  return ReadToken(fd, path);
}

absl::StatusOr<std::string> LoadOrCreateToken(const std::string& path) {
  absl::StatusOr<std::string> known = LoadToken(path);
  if (!absl::IsNotFound(known.status())) return known;
  TANDEM_ASSIGN_OR_RETURN(std::string token, RandomToken());
  TANDEM_RETURN_IF_ERROR(WriteFileAtomically(Env::Real(), path,
                                             [&](WritableFile& file) { return file.Append(token + "\n"); },
                                             {.is_private = true}));
  return token;
}

bool ConstantTimeEqual(absl::string_view a, absl::string_view b) {
  // The digests have the same length for any input.
  unsigned char digest_a[SHA256_DIGEST_LENGTH];
  unsigned char digest_b[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(a.data()), a.size(), digest_a);
  SHA256(reinterpret_cast<const unsigned char*>(b.data()), b.size(), digest_b);
  return CRYPTO_memcmp(digest_a, digest_b, sizeof(digest_a)) == 0;
}

}  // namespace tandem
