#ifndef TANDEM_ENGINE_BASE_SHA256_H_
#define TANDEM_ENGINE_BASE_SHA256_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace tandem {

// Computes the SHA-256 (FIPS 180-4) of all added bytes. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Add(absl::string_view bytes);
  // Returns 64 lower-case hexadecimal digits. Call it a single time, last. INTERNAL if OpenSSL fails.
  absl::StatusOr<std::string> Finish();
  // As Finish, but returns the 32 bytes.
  absl::StatusOr<std::string> FinishBytes();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
  bool good_ = false;
};

// Returns the SHA-256 of `bytes`, as Finish.
absl::StatusOr<std::string> Sha256Of(absl::string_view bytes);
// Returns the SHA-256 of a file's content, read in pieces. Errors name the path.
absl::StatusOr<std::string> Sha256OfFile(const std::string& path);
// Checks that a model's file has the SHA-256 of its job's record. OK if `expected` is empty: the record has
// none. DATA_LOSS if the file has another SHA-256. The message says how to mend it. Otherwise returns errors
// of reading.
absl::Status CheckModelSha256(const std::string& path, absl::string_view expected);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_SHA256_H_
