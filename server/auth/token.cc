#include "server/auth/token.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/random.h>
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
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr int kTokenBytes = 32;
constexpr int kMinCharacters = 16;
constexpr int kMaxCharacters = 256;

absl::Status FileError(absl::string_view what, const std::string& path, int error) {
  return absl::InternalError(absl::StrCat("cannot ", what, " the token file ", path, ": ", strerror(error)));
}

// Writes a temporary file and renames it, so that `path` never holds half a token.
absl::Status WriteToken(const std::string& path, const std::string& token) {
  const std::string temporary = path + ".new";
  unlink(temporary.c_str());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return FileError("create", temporary, errno);
  absl::Cleanup remove = [&] { unlink(temporary.c_str()); };
  const std::string line = token + "\n";
  const bool written =
      write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  if (!written) return FileError("write", temporary, error);
  if (rename(temporary.c_str(), path.c_str()) != 0) return FileError("create", path, errno);
  std::move(remove).Cancel();
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadToken(int fd, const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return FileError("inspect", path, errno);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("the token file ", path, " is not a plain file"));
  }
  if ((info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the token file %s has mode %04o, so others than its owner may use it. If nobody can have read it: "
        "chmod 600 %s. Otherwise remove it; the next start makes a new one",
        path, info.st_mode & 07777, path));
  }
  char buffer[kMaxCharacters + 3];
  const ssize_t got = read(fd, buffer, sizeof(buffer));
  if (got < 0) return FileError("read", path, errno);
  const absl::string_view token = absl::StripAsciiWhitespace(absl::string_view(buffer, got));
  if (token.size() < kMinCharacters || token.size() > kMaxCharacters ||
      !std::all_of(token.begin(), token.end(), [](char c) { return absl::ascii_isgraph(c); })) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the token file %s holds no token (%d to %d characters of visible ASCII). Remove it; the "
        "next start makes a new one",
        path, kMinCharacters, kMaxCharacters));
  }
  return std::string(token);
}

}  // namespace

absl::StatusOr<std::string> RandomToken() {
  char bytes[kTokenBytes];
  size_t filled = 0;
  while (filled < sizeof(bytes)) {
    const ssize_t got = getrandom(bytes + filled, sizeof(bytes) - filled, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return absl::InternalError(absl::StrCat("the system gives no random bytes: ", strerror(errno)));
    filled += got;
  }
  std::string text = absl::WebSafeBase64Escape(absl::string_view(bytes, sizeof(bytes)));
  while (!text.empty() && text.back() == '=') text.pop_back();
  return text;
}

absl::StatusOr<std::string> LoadOrCreateToken(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    absl::Cleanup closer = [fd] { close(fd); };
    return ReadToken(fd, path);
  }
  if (errno != ENOENT) return FileError("read", path, errno);
  TANDEM_ASSIGN_OR_RETURN(std::string token, RandomToken());
  TANDEM_RETURN_IF_ERROR(WriteToken(path, token));
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
