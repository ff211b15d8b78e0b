#include "client/lib/tls_certificate.h"

#include <netdb.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/unique_fd.h"

namespace tandem::client {
namespace {

// Returns a connected socket, or none.
UniqueFd Connect(const std::string& address, absl::Duration timeout) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return UniqueFd();
  absl::string_view host = absl::string_view(address).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(std::string(host).c_str(), address.c_str() + colon + 1, &hints, &found) != 0)
    return UniqueFd();
  UniqueFd connected;
  for (const addrinfo* one = found; one != nullptr && !connected.valid(); one = one->ai_next) {
    UniqueFd fd(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd.valid()) continue;
    const timeval limit = absl::ToTimeval(timeout);
    // On Linux the second limit also applies to connecting.
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0) connected = std::move(fd);
  }
  freeaddrinfo(found);
  return connected;
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? absl::FromTimeT(timegm(&parts)) : absl::InfiniteFuture();
}

using Certificate = std::unique_ptr<X509, void (*)(X509*)>;
using Key = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
using Reader = std::unique_ptr<BIO, int (*)(BIO*)>;

constexpr char kNoCertificate[] = "has no certificate in PEM form";
constexpr char kNoKey[] = "has no private key in PEM form without a passphrase";

Reader ReaderOf(absl::string_view text) {
  return Reader(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
}

// Returns the reader's first certificate, or null.
Certificate ReadCertificate(BIO* reader) {
  return Certificate(PEM_read_bio_X509(reader, nullptr, nullptr, nullptr), X509_free);
}

Key ReadKey(BIO* reader) {
  char no_passphrase[] = "";
  return Key(PEM_read_bio_PrivateKey(reader, nullptr, nullptr, no_passphrase), EVP_PKEY_free);
}

TlsCertificate Describe(const X509& certificate) {
  TlsCertificate result;
  char name[256] = "";
  X509_NAME_oneline(X509_get_subject_name(&certificate), name, sizeof(name));
  result.subject = name;
  result.begin = TimeOf(X509_get0_notBefore(&certificate));
  result.end = TimeOf(X509_get0_notAfter(&certificate));
  return result;
}

}  // namespace

absl::StatusOr<TlsCertificate> FetchTlsCertificate(const std::string& address, absl::Duration timeout) {
  const auto error = [&] {
    return absl::UnavailableError(absl::StrCat("cannot read the certificate at ", address,
                                               ": no server there speaks TLS; check the address"));
  };
  const UniqueFd socket = Connect(address, timeout);
  if (!socket.valid()) return error();
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  if (context == nullptr) return error();
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  const std::unique_ptr<SSL, void (*)(SSL*)> ssl(SSL_new(context.get()), SSL_free);
  if (ssl == nullptr) return error();
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(ssl.get(), kHttp2, sizeof(kHttp2));
  SSL_set_fd(ssl.get(), socket.get());
  // SSL_connect may fail because the server wants a client certificate. The server has shown its own
  // certificate by then.
  SSL_connect(ssl.get());
  const Certificate certificate(SSL_get1_peer_certificate(ssl.get()), X509_free);
  if (certificate == nullptr) return error();
  return Describe(*certificate);
}

absl::StatusOr<TlsCertificate> ReadTlsFiles(const TlsFilePaths& paths) {
  const auto wrong = [](const char* what, const std::string& path, absl::string_view problem) {
    return absl::FailedPreconditionError(absl::StrCat("the TLS ", what, " ", path, " ", problem));
  };
  const auto open_file = [](const std::string& path) {
    return Reader(BIO_new_file(path.c_str(), "r"), BIO_free);
  };
  const auto cannot_be_read = [] { return absl::StrCat("cannot be read: ", strerror(errno)); };
  const auto certificate_file = open_file(paths.certificate);
  if (certificate_file == nullptr) return wrong("certificate", paths.certificate, cannot_be_read());
  const Certificate certificate = ReadCertificate(certificate_file.get());
  if (certificate == nullptr) return wrong("certificate", paths.certificate, kNoCertificate);
  const auto key_file = open_file(paths.key);
  if (key_file == nullptr) return wrong("key", paths.key, cannot_be_read());
  const Key key = ReadKey(key_file.get());
  if (key == nullptr) return wrong("key", paths.key, kNoKey);
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return wrong("key", paths.key, absl::StrCat("is not the key of the certificate ", paths.certificate));
  }
  if (!paths.client_ca.empty()) {
    const auto authorities_file = open_file(paths.client_ca);
    if (authorities_file == nullptr)
      return wrong("authorities of clients", paths.client_ca, cannot_be_read());
    if (ReadCertificate(authorities_file.get()) == nullptr)
      return wrong("authorities of clients", paths.client_ca, "have no certificate in PEM form");
  }
  return Describe(*certificate);
}

std::string WrongWithCertificate(absl::string_view pem) {
  return ReadCertificate(ReaderOf(pem).get()) == nullptr ? kNoCertificate : "";
}

std::string WrongWithKey(absl::string_view pem, absl::string_view certificate_pem,
                         const std::string& certificate_path) {
  const Key key = ReadKey(ReaderOf(pem).get());
  if (key == nullptr) return kNoKey;
  const Certificate certificate = ReadCertificate(ReaderOf(certificate_pem).get());
  if (X509_check_private_key(certificate.get(), key.get()) == 1) return "";
  return absl::StrCat("is not the key of the certificate ", certificate_path);
}

}  // namespace tandem::client
