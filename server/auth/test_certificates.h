#ifndef TANDEM_SERVER_AUTH_TEST_CERTIFICATES_H_
#define TANDEM_SERVER_AUTH_TEST_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace tandem {

// For tests: a self-signed authority that signs other certificates. Not thread-safe.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);

  // Writes the authority's own certificate as PEM.
  void Write(const std::string& path) const;
  // Writes a new certificate and its key, with mode 0600. The certificate is valid for `name` and for
  // 127.0.0.1, from an hour before `end`. `end` counts from now.
  void Issue(const std::string& name, const std::string& certificate_path, const std::string& key_path,
             absl::Duration end = absl::Hours(1));

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

  // Returns a certificate signed by this authority's key. If `is_authority`, makes the authority's own
  // certificate.
  Certificate Make(const std::string& name, EVP_PKEY* key, bool is_authority,
                   absl::Duration end = absl::Hours(1));

  const std::string name_;
  const Key key_;
  int serial_ = 0;
  const Certificate certificate_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_TEST_CERTIFICATES_H_
