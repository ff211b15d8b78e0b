#ifndef TANDEM_SERVER_AUTH_TEST_CERTIFICATES_H_
#define TANDEM_SERVER_AUTH_TEST_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace tandem {

// For tests: an authority that signs itself, and signs certificates of others. Not thread-safe.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);

  // Writes the authority's own certificate, PEM.
  void Write(const std::string& path) const;
  // Writes a new certificate for `name`, valid for the name and for 127.0.0.1 from an hour before `end`,
  // which is from now on, and its key, which has mode 0600.
  void Issue(const std::string& name, const std::string& certificate_path, const std::string& key_path,
             absl::Duration end = absl::Hours(1));

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

  // Signed by this authority's key; the authority's own where `is_authority`.
  Certificate Make(const std::string& name, EVP_PKEY* key, bool is_authority,
                   absl::Duration end = absl::Hours(1));

  const std::string name_;
  const Key key_;
  int serial_ = 0;
  const Certificate certificate_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_TEST_CERTIFICATES_H_
