#ifndef TANDEM_CLIENT_LIB_SHA256_H_
#define TANDEM_CLIENT_LIB_SHA256_H_

#include <openssl/evp.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem::client {

// Computes the SHA-256 of all added data. Not thread-safe.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }

  void Update(absl::string_view data) { EVP_DigestUpdate(context_.get(), data.data(), data.size()); }

  // Returns the 32 bytes. Call this once.
  std::string Finish() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int length = 0;
    EVP_DigestFinal_ex(context_.get(), digest, &length);
    return std::string(reinterpret_cast<const char*>(digest), length);
  }

 private:
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_SHA256_H_
