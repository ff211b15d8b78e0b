#include "server/clusters/worker_listener.h"

#include <grpcpp/resource_quota.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "server/auth/listen_policy.h"
#include "server/workers/worker_protocol.h"

namespace tandem {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Memory = std::unique_ptr<BIO, decltype(&BIO_free_all)>;

// Long, because the certificate is not replaced. Nodes' clocks may be slow.
constexpr absl::Duration kValidBefore = absl::Hours(48);
constexpr absl::Duration kValidAfter = absl::Hours(24 * 365 * 30);

// A worker has one stream, and briefly a second one if it starts anew.
constexpr int kMaxStreamsOfAConnection = 4;
// The first worker of each job has a connection. With the public port's half, a quarter of the files is left.
constexpr int kMaxConnections = 4096;
constexpr int kFilesPerConnection = 4;
// For gRPC's buffers of all connections. If they are full, gRPC ends streams, and workers connect again.
constexpr size_t kMaxBufferedBytes = size_t{256} << 20;

void SetLimits(absl::Duration hello_limit, grpc::ServerBuilder* builder) {
  const int milliseconds = static_cast<int>(absl::ToInt64Milliseconds(hello_limit));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsOfAConnection);
  // Covers a connection's start up to its first settings, TLS included.
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, milliseconds);
  // For connections without a stream.
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, milliseconds);
  grpc::ResourceQuota quota("tandem-workers");
  quota.Resize(kMaxBufferedBytes);
  builder->SetResourceQuota(quota);
}

std::string TextOf(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return std::string(data, static_cast<size_t>(size));
}

bool AddExtension(X509* certificate, int kind, const std::string& value) {
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()), &X509_EXTENSION_free);
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

absl::StatusOr<WorkerCertificate> MakeCertificate() {
  const absl::Status failed = absl::InternalError("cannot create a certificate for workers");
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const Certificate certificate(X509_new(), &X509_free);
  if (key == nullptr || certificate == nullptr) return failed;
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -absl::ToInt64Seconds(kValidBefore));
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), absl::ToInt64Seconds(kValidAfter));
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(kWorkerListenerName), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  if (!AddExtension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE") ||
      !AddExtension(certificate.get(), NID_subject_alt_name, absl::StrCat("DNS:", kWorkerListenerName)) ||
      X509_sign(certificate.get(), key.get(), EVP_sha256()) <= 0) {
    return failed;
  }
  const Memory key_text(BIO_new(BIO_s_mem()), &BIO_free_all);
  const Memory certificate_text(BIO_new(BIO_s_mem()), &BIO_free_all);
  if (PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1 ||
      PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1) {
    return failed;
  }
  return WorkerCertificate{TextOf(key_text.get()), TextOf(certificate_text.get())};
}

}  // namespace

absl::StatusOr<WorkerCertificate> LoadWorkerCertificate(const std::string& state_folder) {
  const std::string key_path = state_folder + "/worker-listen.key";
  const std::string certificate_path = state_folder + "/worker-listen.pem";
  absl::StatusOr<std::string> key = Env::Real()->ReadFile(key_path);
  absl::StatusOr<std::string> certificate = Env::Real()->ReadFile(certificate_path);
  if (key.ok() && certificate.ok()) return WorkerCertificate{*std::move(key), *std::move(certificate)};
  for (const absl::Status& status : {key.status(), certificate.status()}) {
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  TANDEM_ASSIGN_OR_RETURN(WorkerCertificate made, MakeCertificate());
  for (const auto& [path, text] :
       {std::pair(key_path, made.key), std::pair(certificate_path, made.certificate)}) {
    TANDEM_RETURN_IF_ERROR(WriteFileAtomically(
        Env::Real(), path, [&text = text](WritableFile& file) { return file.Append(text); },
        {.is_private = true}));
  }
  return made;
}

absl::StatusOr<std::unique_ptr<WorkerListener>> WorkerListener::Start(const Options& options,
                                                                      WorkerSessionHost* host,
                                                                      JobMachine* jobs) {
  TANDEM_ASSIGN_OR_RETURN(const ListenAddress address, ParseListenAddress(options.address));
  std::unique_ptr<WorkerListener> listener(new WorkerListener(host, jobs, options.hello_limit));
  // gRPC's own listener would never accept again after the process once had no free file.
  TANDEM_ASSIGN_OR_RETURN(listener->gate_,
                          ConnectionGate::Listen(address, {.most = kMaxConnections,
                                                           .files_per_connection = kFilesPerConnection,
                                                           .address_option = "--worker-listen",
                                                           .most_option = "--worker-listen"}));
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({options.certificate.key, options.certificate.certificate});
  grpc::ServerBuilder builder;
  auto acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::SslServerCredentials(tls));
  listener->service_.AddTo(&builder, options.silence_limit);
  SetLimits(options.hello_limit, &builder);
  // Workers send keepalives too, which gRPC would count as abuse.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  listener->server_ = builder.BuildAndStart();
  if (listener->server_ == nullptr) return absl::InternalError("cannot start gRPC's server for workers");
  listener->gate_->Start(std::move(acceptor));
  return listener;
}

WorkerListener::~WorkerListener() { Stop(); }

void WorkerListener::Stop() {
  if (gate_ != nullptr) gate_->Stop();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

}  // namespace tandem
