#include "server/auth/tls_files.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

absl::StatusOr<std::string> ReadPem(const std::string& path, absl::string_view what) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  if (!file) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot read the TLS ", what, " ", path, ": ", strerror(errno)));
  }
  return content.str();
}

Bio Reader(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
}

// Returns the number of certificates; -1 if a block cannot be parsed.
int CountCertificates(const std::string& pem) {
  const Bio reader = Reader(pem);
  int count = 0;
  ERR_clear_error();
  while (true) {
    const Certificate one(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr), &X509_free);
    if (one == nullptr) break;
    ++count;
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  return at_end ? count : -1;
}

// Returns the certificate's validity.
absl::StatusOr<CertificateValidity> CheckPair(const TlsFiles& files, const TlsContent& content) {
  const Bio certificate_reader = Reader(content.certificate);
  const Certificate certificate(PEM_read_bio_X509(certificate_reader.get(), nullptr, nullptr, nullptr),
                                &X509_free);
  // Also check the certificates after the first: TLS would fail on them later.
  if (certificate == nullptr || CountCertificates(content.certificate) < 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot use the TLS certificate ", files.certificate, ": it has no certificate in PEM form",
        CountCertificates(content.key) < 1
            ? ""
            : absl::StrCat(", but ", files.key, " has: are the two swapped?")));
  }
  const Bio key_reader = Reader(content.key);
  // An empty passphrase: a daemon has nobody to ask.
  char no_passphrase[] = "";
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(key_reader.get(), nullptr, nullptr, no_passphrase), &EVP_PKEY_free);
  if (key == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot use the TLS key ", files.key, ": it has no private key in PEM form without a passphrase"));
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot use the TLS key ", files.key, ": it does not belong to the certificate ", files.certificate));
  }
  return ValidityOf(*certificate, files.certificate);
}

}  // namespace

absl::StatusOr<TlsContent> ReadTlsFiles(const TlsFiles& files) {
  TlsContent content;
  TANDEM_ASSIGN_OR_RETURN(content.certificate, ReadPem(files.certificate, "certificate"));
  TANDEM_ASSIGN_OR_RETURN(content.key, ReadPem(files.key, "key"));
  TANDEM_ASSIGN_OR_RETURN(content.validity, CheckPair(files, content));
  struct stat info;
  if (stat(files.key.c_str(), &info) == 0 && (info.st_mode & 007) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("cannot use the TLS key %s: its mode %04o lets other users read it; chmod 600 %s",
                        files.key, info.st_mode & 07777, files.key));
  }
  if (files.client_ca.empty()) return content;
  TANDEM_ASSIGN_OR_RETURN(content.client_ca, ReadPem(files.client_ca, "authorities of clients"));
  if (CountCertificates(content.client_ca) < 1) {
    return absl::FailedPreconditionError(absl::StrCat("cannot use the clients' authorities ", files.client_ca,
                                                      ": the file has no certificate in PEM form"));
  }
  return content;
}

}  // namespace tandem
