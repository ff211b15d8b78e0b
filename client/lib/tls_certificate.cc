#include "client/lib/tls_certificate.h"

#include <netdb.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tandem::client {
namespace {

// A socket that is closed.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// Connected, or -1.
int Connect(const std::string& address, absl::Duration timeout) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return -1;
  absl::string_view host = absl::string_view(address).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(std::string(host).c_str(), address.c_str() + colon + 1, &hints, &found) != 0) return -1;
  int connected = -1;
  for (const addrinfo* one = found; one != nullptr && connected < 0; one = one->ai_next) {
    const int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    const timeval limit = absl::ToTimeval(timeout);
    // On Linux the second holds for connecting, too.
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, one->ai_addr, one->ai_addrlen) == 0) {
      connected = fd;
    } else {
      close(fd);
    }
  }
  freeaddrinfo(found);
  return connected;
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? absl::FromTimeT(timegm(&parts)) : absl::InfiniteFuture();
}

}  // namespace

absl::StatusOr<TlsCertificate> FetchTlsCertificate(const std::string& address, absl::Duration timeout) {
  const auto error = [&] {
    return absl::UnavailableError(absl::StrCat("nobody at ", address, " speaks TLS"));
  };
  const Socket socket(Connect(address, timeout));
  if (socket.fd() < 0) return error();
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  if (context == nullptr) return error();
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  const std::unique_ptr<SSL, void (*)(SSL*)> ssl(SSL_new(context.get()), SSL_free);
  if (ssl == nullptr) return error();
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(ssl.get(), kHttp2, sizeof(kHttp2));
  SSL_set_fd(ssl.get(), socket.fd());
  // Where the server wants a certificate of ours this may fail, and it has shown its own all the same.
  SSL_connect(ssl.get());
  const std::unique_ptr<X509, void (*)(X509*)> certificate(SSL_get1_peer_certificate(ssl.get()), X509_free);
  if (certificate == nullptr) return error();
  TlsCertificate result;
  char name[256] = "";
  X509_NAME_oneline(X509_get_subject_name(certificate.get()), name, sizeof(name));
  result.subject = name;
  result.begin = TimeOf(X509_get0_notBefore(certificate.get()));
  result.end = TimeOf(X509_get0_notAfter(certificate.get()));
  return result;
}

}  // namespace tandem::client
