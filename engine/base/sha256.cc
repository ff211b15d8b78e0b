#include "engine/base/sha256.h"

#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

// The number of digits in messages.
constexpr size_t kShownDigits = 12;

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  good_ = context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Add(absl::string_view bytes) {
  good_ = good_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
}

absl::StatusOr<std::string> Sha256::FinishBytes() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const bool good = std::exchange(good_, false);
  if (!good || EVP_DigestFinal_ex(context_.get(), digest, &size) != 1) {
    return absl::InternalError("cannot compute a SHA-256");
  }
  return std::string(reinterpret_cast<const char*>(digest), size);
}

absl::StatusOr<std::string> Sha256::Finish() {
  const absl::StatusOr<std::string> bytes = FinishBytes();
  if (!bytes.ok()) return bytes.status();
  return absl::BytesToHexString(*bytes);
}

absl::StatusOr<std::string> Sha256Of(absl::string_view bytes) {
  Sha256 hash;
  hash.Add(bytes);
  return hash.Finish();
}

absl::StatusOr<std::string> Sha256OfFile(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  Sha256 hash;
  std::vector<char> buffer(1 << 18);
  while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    hash.Add({buffer.data(), count});
  }
  if (std::ferror(file.get()) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  return hash.Finish();
}

absl::Status CheckModelSha256(const std::string& path, absl::string_view expected) {
  if (expected.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> found = Sha256OfFile(path);
  if (!found.ok()) return found.status();
  if (*found == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      path, " is not the file that the job made: its SHA-256 begins with ", found->substr(0, kShownDigits),
      ", by the job's record with ", expected.substr(0, kShownDigits),
      "; put a good copy in its place, as one that was downloaded before, or train the model again"));
}

}  // namespace tandem
