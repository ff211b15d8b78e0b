#include "server/auth/test_certificates.h"

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstdio>

namespace tandem {
namespace {

void SetName(X509_NAME* name, const std::string& text) {
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(text.c_str()),
                             -1, -1, 0);
}

void AddExtension(X509* certificate, int kind, const std::string& value) {
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()), &X509_EXTENSION_free);
  ASSERT_NE(extension, nullptr) << value;
  ASSERT_EQ(X509_add_ext(certificate, extension.get(), -1), 1);
}

void WriteCertificate(const std::string& path, X509* certificate) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "w"), std::fclose);
  ASSERT_NE(file, nullptr) << path;
  ASSERT_EQ(PEM_write_X509(file.get(), certificate), 1);
}

}  // namespace

TestAuthority::TestAuthority(const std::string& name)
    : name_(name), key_(EVP_EC_gen("P-256"), &EVP_PKEY_free), certificate_(Make(name, key_.get(), true)) {}

TestAuthority::Certificate TestAuthority::Make(const std::string& name, EVP_PKEY* key, bool is_authority,
                                               absl::Duration end) {
  Certificate certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), ++serial_);
  // Start a minute earlier, because two readings of the clock may differ.
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), absl::ToInt64Seconds(end) - 3660);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), absl::ToInt64Seconds(end));
  X509_set_pubkey(certificate.get(), key);
  SetName(X509_get_subject_name(certificate.get()), name);
  const std::unique_ptr<X509_NAME, decltype(&X509_NAME_free)> issuer(X509_NAME_new(), &X509_NAME_free);
  SetName(issuer.get(), name_);
  X509_set_issuer_name(certificate.get(), issuer.get());
  if (is_authority) {
    AddExtension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  } else {
    AddExtension(certificate.get(), NID_subject_alt_name, "DNS:" + name + ",IP:127.0.0.1");
  }
  EXPECT_GT(X509_sign(certificate.get(), key_.get(), EVP_sha256()), 0);
  return certificate;
}

void TestAuthority::Write(const std::string& path) const { WriteCertificate(path, certificate_.get()); }

void TestAuthority::Issue(const std::string& name, const std::string& certificate_path,
                          const std::string& key_path, absl::Duration end) {
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  WriteCertificate(certificate_path, Make(name, key.get(), false, end).get());
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(key_path.c_str(), "w"), std::fclose);
  ASSERT_NE(file, nullptr) << key_path;
  ASSERT_EQ(PEM_write_PrivateKey(file.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr), 1);
  ASSERT_EQ(chmod(key_path.c_str(), 0600), 0);
}

}  // namespace tandem
