#include "server/auth/server_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

absl::string_view AsText(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// Credentials of gRPC's core with an authenticator. The core calls it on its own threads, without waiting.
class AuthenticatedCredentials : public grpc::ServerCredentials {
 public:
  // Takes `credentials` over.
  AuthenticatedCredentials(grpc_server_credentials* credentials,
                           std::shared_ptr<const Authenticator> authenticator)
      : credentials_(credentials) {
    // The core frees the state with the credentials, which a server holds for as long as it lives.
    auto* state = new std::shared_ptr<const Authenticator>(std::move(authenticator));
    grpc_server_credentials_set_auth_metadata_processor(credentials_, {&Process, &Destroy, state});
  }
  ~AuthenticatedCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static void Process(void* state, grpc_auth_context*, const grpc_metadata* metadata, size_t count,
                      grpc_process_auth_metadata_done_cb done, void* user_data) {
    const auto& authenticator = *static_cast<std::shared_ptr<const Authenticator>*>(state);
    std::vector<Authenticator::Metadata> entries;
    entries.reserve(count);
    absl::string_view method;
    for (size_t i = 0; i < count; ++i) {
      entries.emplace_back(AsText(metadata[i].key), AsText(metadata[i].value));
      if (entries.back().first == ":path") method = entries.back().second;
    }
    const absl::Status status = authenticator->Check(entries);
    if (!status.ok()) {
      spdlog::warn("call refused method={} code=UNAUTHENTICATED",
                   absl::Utf8SafeCEscape(method.substr(0, 200)));
    }
    done(user_data, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.code()),
         status.ok() ? nullptr : std::string(status.message()).c_str());
  }

  static void Destroy(void* state) { delete static_cast<std::shared_ptr<const Authenticator>*>(state); }

  grpc_server_credentials* const credentials_;
};

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

absl::Status CheckPair(const TlsFiles& files, const std::string& certificate, const std::string& key) {
  using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
  const Bio certificate_bio(BIO_new_mem_buf(certificate.data(), static_cast<int>(certificate.size())),
                            &BIO_free);
  const Bio key_bio(BIO_new_mem_buf(key.data(), static_cast<int>(key.size())), &BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> x509(
      PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr), &X509_free);
  if (x509 == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the TLS certificate ", files.certificate, " holds no certificate in PEM form"));
  }
  // An empty passphrase: a daemon has nobody to ask.
  char no_passphrase[] = "";
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> private_key(
      PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, no_passphrase), &EVP_PKEY_free);
  if (private_key == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the TLS key ", files.key, " holds no private key in PEM form without a passphrase"));
  }
  if (X509_check_private_key(x509.get(), private_key.get()) != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("the TLS key ", files.key, " is not the key of the certificate ", files.certificate));
  }
  return absl::OkStatus();
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> PlainCredentials(
    std::shared_ptr<const Authenticator> authenticator) {
  return std::make_shared<AuthenticatedCredentials>(grpc_insecure_server_credentials_create(),
                                                    std::move(authenticator));
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsCredentials(
    const TlsFiles& files, std::shared_ptr<const Authenticator> authenticator) {
  TANDEM_ASSIGN_OR_RETURN(const std::string certificate, ReadPem(files.certificate, "certificate"));
  TANDEM_ASSIGN_OR_RETURN(const std::string key, ReadPem(files.key, "key"));
  struct stat info;
  if (stat(files.key.c_str(), &info) == 0 && (info.st_mode & 007) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the TLS key %s has mode %04o, so anyone on this machine can use it: chmod 600 %s",
                        files.key, info.st_mode & 07777, files.key));
  }
  TANDEM_RETURN_IF_ERROR(CheckPair(files, certificate, key));
  const grpc_ssl_pem_key_cert_pair pair = {key.c_str(), certificate.c_str()};
  grpc_ssl_server_certificate_config* config = grpc_ssl_server_certificate_config_create(nullptr, &pair, 1);
  grpc_server_credentials* credentials =
      grpc_ssl_server_credentials_create_with_options(grpc_ssl_server_credentials_create_options_using_config(
          GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE, config));
  if (credentials == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the TLS library does not accept ", files.certificate, " and ", files.key));
  }
  std::shared_ptr<grpc::ServerCredentials> result =
      std::make_shared<AuthenticatedCredentials>(credentials, std::move(authenticator));
  return result;
}

}  // namespace tandem
