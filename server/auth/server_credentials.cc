#include "server/auth/server_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/base/mutex.h"

namespace tandem {
namespace {

absl::string_view AsText(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// Gives gRPC's core the certificates at each handshake.
class CertificateSource {
 public:
  explicit CertificateSource(std::shared_ptr<const TlsReloader> files) : files_(std::move(files)) {}

  static grpc_ssl_certificate_config_reload_status Fetch(void* source,
                                                         grpc_ssl_server_certificate_config** config) {
    return static_cast<CertificateSource*>(source)->Fetch(config);
  }

 private:
  grpc_ssl_certificate_config_reload_status Fetch(grpc_ssl_server_certificate_config** config) {
    std::shared_ptr<const TlsContent> content = files_->current();
    MutexLock lock(&mutex_);
    if (content == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {content->key.c_str(), content->certificate.c_str()};
    // The core requires authorities of clients even if no client certificate is asked for. The core then
    // ignores the authorities.
    const std::string& authorities = content->client_ca.empty() ? content->certificate : content->client_ca;
    *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
    given_ = std::move(content);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const std::shared_ptr<const TlsReloader> files_;
  Mutex mutex_;
  std::shared_ptr<const TlsContent> given_ ABSL_GUARDED_BY(mutex_);
};

// The state of all calls and handshakes.
struct CallState {
  CallState(std::shared_ptr<const Authenticator> authenticator_arg, RefusalObserver on_refused_arg)
      : authenticator(std::move(authenticator_arg)), on_refused(std::move(on_refused_arg)) {}

  const std::shared_ptr<const Authenticator> authenticator;
  const RefusalObserver on_refused;
  // Null without TLS.
  std::unique_ptr<CertificateSource> certificates;
};

// Credentials of gRPC's core with an authenticator. The core calls the authenticator on the core's threads,
// which must not block.
class AuthenticatedCredentials : public grpc::ServerCredentials {
 public:
  // Takes ownership of `credentials`. The core frees `state` together with the credentials, after the
  // server's end.
  AuthenticatedCredentials(grpc_server_credentials* credentials, std::unique_ptr<CallState> state)
      : credentials_(credentials) {
    grpc_server_credentials_set_auth_metadata_processor(credentials_, {&Process, &Destroy, state.release()});
  }
  ~AuthenticatedCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static void Process(void* state, grpc_auth_context*, const grpc_metadata* metadata, size_t count,
                      grpc_process_auth_metadata_done_cb done, void* user_data) {
    const CallState& call = *static_cast<const CallState*>(state);
    std::vector<Authenticator::Metadata> entries;
    entries.reserve(count);
    absl::string_view path;
    for (size_t i = 0; i < count; ++i) {
      entries.emplace_back(AsText(metadata[i].key), AsText(metadata[i].value));
      if (entries.back().first == ":path") path = entries.back().second;
    }
    const absl::Status status = call.authenticator->Check(entries);
    if (!status.ok() && call.on_refused != nullptr) call.on_refused(path, status);
    done(user_data, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.code()),
         status.ok() ? nullptr : std::string(status.message()).c_str());
  }

  static void Destroy(void* state) { delete static_cast<CallState*>(state); }

  grpc_server_credentials* const credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> PlainCredentials(std::shared_ptr<const Authenticator> authenticator,
                                                          RefusalObserver on_refused) {
  auto state = std::make_unique<CallState>(std::move(authenticator), std::move(on_refused));
  return std::make_shared<AuthenticatedCredentials>(grpc_insecure_server_credentials_create(),
                                                    std::move(state));
}

std::shared_ptr<grpc::ServerCredentials> TlsCredentials(std::shared_ptr<const TlsReloader> files,
                                                        std::shared_ptr<const Authenticator> authenticator,
                                                        RefusalObserver on_refused) {
  auto state = std::make_unique<CallState>(std::move(authenticator), std::move(on_refused));
  const grpc_ssl_client_certificate_request_type asks =
      files->asks_clients() ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                            : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
  state->certificates = std::make_unique<CertificateSource>(std::move(files));
  grpc_server_credentials* const credentials = grpc_ssl_server_credentials_create_with_options(
      grpc_ssl_server_credentials_create_options_using_config_fetcher(asks, &CertificateSource::Fetch,
                                                                      state->certificates.get()));
  return std::make_shared<AuthenticatedCredentials>(credentials, std::move(state));
}

}  // namespace tandem
