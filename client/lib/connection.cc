#include "client/lib/connection.h"

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <netinet/in.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/lib/file_reading.h"
#include "client/lib/tls_certificate.h"

namespace tandem::client {
namespace {

constexpr size_t kLargestCertificateFile = 4 << 20;
constexpr size_t kLargestMessage = 64 << 20;

bool IsUnixAddress(absl::string_view address) {
  return absl::StartsWith(address, "unix:") || absl::StartsWith(address, "unix-abstract:");
}

// Returns the part before the port, without the brackets of an IPv6 address.
absl::string_view Host(absl::string_view address) {
  const size_t colon = address.rfind(':');
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return host;
}

absl::Status CheckAddress(const std::string& address) {
  if (IsUnixAddress(address)) return absl::OkStatus();
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 1 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("cannot connect to `", address,
                                                   "`: it is not an address; give HOST:PORT, such as ",
                                                   kDefaultAddress));
  }
  return absl::OkStatus();
}

absl::Status ReadPem(const std::string& path, const char* what, std::string* content) {
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> read = ReadWholeFile(path, kLargestCertificateFile);
  if (!read.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot use the ", what, ": ", read.status().message(), "; name another file"));
  }
  *content = *std::move(read);
  return absl::OkStatus();
}

// Reads the TLS files and checks their content.
absl::StatusOr<grpc::SslCredentialsOptions> ReadTlsFiles(const ConnectionOptions& options) {
  grpc::SslCredentialsOptions files;
  absl::Status status = ReadPem(options.tls_ca_file, "CA file", &files.pem_root_certs);
  status.Update(ReadPem(options.tls_certificate_file, "client certificate", &files.pem_cert_chain));
  status.Update(ReadPem(options.tls_key_file, "client key", &files.pem_private_key));
  if (!status.ok()) return status;
  const auto wrong = [](const char* what, const std::string& path, const std::string& problem) {
    return absl::InvalidArgumentError(absl::StrCat("the ", what, " ", path, " ", problem));
  };
  if (!options.tls_ca_file.empty()) {
    const std::string problem = WrongWithCertificate(files.pem_root_certs);
    if (!problem.empty()) return wrong("CA file (--tls-ca)", options.tls_ca_file, problem);
  }
  if (!options.tls_certificate_file.empty()) {
    std::string problem = WrongWithCertificate(files.pem_cert_chain);
    if (!problem.empty()) {
      return wrong("client certificate (--tls-cert)", options.tls_certificate_file, problem);
    }
    problem = WrongWithKey(files.pem_private_key, files.pem_cert_chain, options.tls_certificate_file);
    if (!problem.empty()) {
      return wrong("client key (--tls-key)", options.tls_key_file, problem);
    }
  }
  return files;
}

grpc::ChannelArguments Arguments(const ConnectionOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kLargestMessage);
  // Lets a watcher notice within a minute that a daemon vanished silently, for example by a pulled cable.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 40'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 15'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A stream returns as soon as its connection, so these limits bound the time until a client finds a
  // restarted daemon.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // Despite its name, this is the longest time of an attempt to connect. A busy machine needs more than a
  // moment.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  // A proxy in the environment is not for the daemon.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!options.tls_server_name.empty()) arguments.SetSslTargetNameOverride(options.tls_server_name);
  return arguments;
}

}  // namespace

bool IsLocalAddress(absl::string_view address) {
  if (IsUnixAddress(address)) return true;
  const std::string host(Host(address));
  if (host == "localhost" || host == "::1" || host == "::" || host == "0.0.0.0") return true;
  in_addr v4;  // "127.example.org" is a name that may be any machine.
  return inet_pton(AF_INET, host.c_str(), &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

std::string ReachableAddress(absl::string_view address) {
  for (const auto& [unspecified, loopback] :
       {std::pair<const char*, const char*>("0.0.0.0:", "127.0.0.1:"), {"[::]:", "localhost:"}}) {
    if (absl::StartsWith(address, unspecified)) {
      return absl::StrCat(loopback, address.substr(absl::string_view(unspecified).size()));
    }
  }
  return std::string(address);
}

bool UsesTls(const ConnectionOptions& options) {
  return options.tls || !options.tls_ca_file.empty() || !options.tls_certificate_file.empty();
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const ConnectionOptions& options) {
  if (absl::Status status = CheckAddress(options.address); !status.ok()) return status;
  if (!UsesTls(options)) {
    if (!options.token.empty() && !IsLocalAddress(options.address) && !options.allow_plaintext) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot send the token to ", options.address,
                       ": it is another machine, and without TLS the token would travel unencrypted; name "
                       "the daemon's authority with --tls-ca FILE, or allow plain text with --plaintext"));
    }
    return grpc::CreateCustomChannel(options.address, grpc::InsecureChannelCredentials(), Arguments(options));
  }
  if (options.tls_certificate_file.empty() != options.tls_key_file.empty()) {
    return absl::InvalidArgumentError(
        "cannot use a client certificate: its certificate or its key is missing; give --tls-cert and "
        "--tls-key together");
  }
  const absl::StatusOr<grpc::SslCredentialsOptions> files = ReadTlsFiles(options);
  if (!files.ok()) return files.status();
  return grpc::CreateCustomChannel(options.address, grpc::SslCredentials(*files), Arguments(options));
}

}  // namespace tandem::client
