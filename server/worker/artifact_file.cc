#include "server/worker/artifact_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/workers/unique_fd.h"

namespace tandem {

absl::StatusOr<v1::Artifact> DescribeArtifact(const std::string& folder, const std::string& name,
                                              const std::string& description) {
  const std::string path = absl::StrCat(folder, "/", name);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  bool hashed = context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  int64_t size = 0;
  std::vector<char> buffer(1 << 20);
  while (hashed) {
    const ssize_t count = read(fd.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
    if (count == 0) break;
    size += count;
    hashed = EVP_DigestUpdate(context.get(), buffer.data(), count) == 1;
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int digest_size = 0;
  if (!hashed || EVP_DigestFinal_ex(context.get(), digest, &digest_size) != 1) {
    return absl::InternalError(absl::StrCat("cannot compute the SHA-256 of ", path));
  }
  v1::Artifact artifact;
  artifact.set_name(name);
  artifact.set_size_bytes(size);
  artifact.set_description(description);
  artifact.set_sha256(
      absl::BytesToHexString(absl::string_view(reinterpret_cast<char*>(digest), digest_size)));
  return artifact;
}

}  // namespace tandem
