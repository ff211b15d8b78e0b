#ifndef TANDEM_ENGINE_BASE_SHA256_H_
#define TANDEM_ENGINE_BASE_SHA256_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace tandem {

// The SHA-256 (FIPS 180-4) of what is added to it. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Add(absl::string_view bytes);
  // 64 lower-case hexadecimal digits. Once; nothing can be added after it.
  absl::StatusOr<std::string> Finish();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
  bool good_ = false;
};

// That of `bytes`, as Finish gives it.
absl::StatusOr<std::string> Sha256Of(absl::string_view bytes);
// That of a file's content, read piece by piece. Errors name the path.
absl::StatusOr<std::string> Sha256OfFile(const std::string& path);
// That a model's file has the SHA-256 that its job's record says; OK where `expected` is empty: it is
// not known. DATA_LOSS: it has another; the message says what can be done. Other errors are those of reading.
absl::Status CheckModelSha256(const std::string& path, absl::string_view expected);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_SHA256_H_
