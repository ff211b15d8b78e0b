#include "client/cli/session.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/format.h"
#include "client/lib/file_reading.h"
#include "client/lib/listener_check.h"
#include "client/lib/status_details.h"
#include "client/lib/tls_certificate.h"

namespace tandem::cli {
namespace {

// The longest wait for a refused certificate, to explain the refusal.
constexpr absl::Duration kLongestTlsWait = absl::Seconds(5);

constexpr size_t kLargestSmallFile = 4096;

// Returns the useful end of "failed to connect to all addresses; last error: UNKNOWN: ipv4:...: Failed to
// connect to remote host: Connection refused".
absl::string_view ShortReason(absl::string_view message) {
  if (!absl::StartsWith(message, "failed to connect to all addresses")) return message;
  const size_t colon = message.rfind(": ");
  return colon == absl::string_view::npos ? message : message.substr(colon + 2);
}

// Returns why this client refuses the server's certificate: its dates, or its authority. gRPC does not say
// why.
std::string CertificateAdvice(const std::string& address, const Terminal& terminal) {
  const auto certificate = client::FetchTlsCertificate(address, kLongestTlsWait);
  const absl::Time now = terminal.Now();
  if (certificate.ok() && certificate->end <= now) {
    return absl::StrCat(
        "The daemon's certificate expired on ", FormatTimestamp(certificate->end, terminal.TimeZone()),
        ". Renew it, or set this machine's clock (", FormatTimestamp(now, terminal.TimeZone()), ").");
  }
  if (certificate.ok() && certificate->begin > now) {
    return absl::StrCat("The daemon's certificate is valid only from ",
                        FormatTimestamp(certificate->begin, terminal.TimeZone()),
                        " on. Set this machine's clock (", FormatTimestamp(now, terminal.TimeZone()), ").");
  }
  return "No trusted authority signed the daemon's certificate. Name its authority with --tls-ca FILE (or "
         "TANDEM_TLS_CA).";
}

// Returns advice for a failed connection.
std::string ConnectionAdvice(absl::string_view message, const std::string& address,
                             const GlobalOptions& options, const Terminal& terminal) {
  if (absl::StrContains(message, client::kStrangerListens)) {
    return "The daemon has probably stopped. Start it with `tandemd`, on another port (--listen) if need be. "
           "If this user runs the daemon, name the token with --token-file (or TANDEM_TOKEN_FILE).";
  }
  const bool tls = options.tls || !options.tls_ca.empty() || !options.tls_certificate.empty();
  if (!tls && absl::StrContains(message, "ocket closed")) {
    return "If the daemon uses TLS, give its authority with --tls-ca FILE (or TANDEM_TLS_CA).";
  }
  if (tls && absl::StrContains(message, "ocket closed")) {
    return options.tls_certificate.empty()
               ? "If the daemon needs a client certificate, give --tls-cert FILE and --tls-key FILE (or "
                 "TANDEM_TLS_CERT and TANDEM_TLS_KEY)."
               : "The daemon may refuse the certificate in --tls-cert. An authority in its --tls-client-ca "
                 "must have signed it, and it must not have expired.";
  }
  if (tls && absl::StrContains(message, "peer certificate")) {
    return "Use a name from the daemon's certificate as address, or give such a name with --tls-server-name "
           "NAME (or TANDEM_TLS_SERVER_NAME).";
  }
  if (tls && absl::StrContains(message, "certificate verify failed")) {
    return CertificateAdvice(address, terminal);
  }
  if (tls && absl::StrContains(message, "empty address list")) {
    return "The TLS files are wrong. --tls-ca needs certificates in PEM, and --tls-cert and --tls-key need a "
           "matching pair.";
  }
  if (tls && absl::StrContains(message, "wrong version number")) {
    return "The server there does not speak TLS. Check the address. For a daemon without TLS, leave out "
           "--tls and --tls-ca (and TANDEM_TLS_CA).";
  }
  if (client::IsLocalAddress(address)) {
    return "Start one with `tandemd`, or name its address with --address HOST:PORT (or TANDEM_ADDRESS).";
  }
  return "Check that it runs, and name its address with --address HOST:PORT (or TANDEM_ADDRESS).";
}

}  // namespace

std::string Session::StateFolder() const {
  if (!options.state_folder.empty()) return options.state_folder;
  if (terminal_.IsRoot()) return "/var/lib/tandem";
  if (const auto state = terminal_.Environment("XDG_STATE_HOME"); state.has_value() && !state->empty()) {
    return *state + "/tandem";
  }
  return terminal_.Environment("HOME").value_or("") + "/.local/state/tandem";
}

std::string Session::Address() {
  if (!options.address.empty()) return options.address;
  const absl::StatusOr<std::string> written =
      client::ReadWholeFile(StateFolder() + "/address", kLargestSmallFile);
  if (written.ok()) {
    const absl::string_view address = absl::StripAsciiWhitespace(*written);
    if (!address.empty()) return client::ReachableAddress(address);
  }
  return client::kDefaultAddress;
}

absl::Status Session::CheckStateFolder() const {
  if (!options.address.empty()) return absl::OkStatus();
  const absl::Status written = client::ReadWholeFile(StateFolder() + "/address", kLargestSmallFile).status();
  if (written.ok()) return absl::OkStatus();
  if (!absl::IsNotFound(written)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot find the daemon's address: ", written.message(),
                                                   "; name it with --address HOST:PORT (or TANDEM_ADDRESS)"));
  }
  if (options.state_folder.empty()) return absl::OkStatus();
  struct stat info = {};
  return absl::UnavailableError(
      absl::StrCat("no daemon runs on the state folder ", options.state_folder,
                   stat(options.state_folder.c_str(), &info) == 0
                       ? ": it has no file `address`, which a daemon writes when it is ready"
                       : ": the folder does not exist"));
}

std::string Session::TokenFile() const {
  return options.token_file.empty() ? StateFolder() + "/token" : options.token_file;
}

absl::StatusOr<std::string> Session::Token() {
  const bool given = !options.token_file.empty();
  token_file_ = TokenFile();
  const absl::StatusOr<std::string> content = client::ReadWholeFile(token_file_, kLargestSmallFile);
  if (!content.ok()) {
    token_problem_ = std::string(content.status().message());
    // A call without a token may still have a better error, such as that no daemon runs.
    if (!given) return "";
    return absl::InvalidArgumentError(
        absl::StrCat("cannot use the token file: ", token_problem_,
                     "; name another file with --token-file or TANDEM_TOKEN_FILE"));
  }
  const std::string token(absl::StripAsciiWhitespace(*content));
  for (const char c : token) {
    if (!absl::ascii_isgraph(c)) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot use the token file ", token_file_,
                       ": it has spaces or control characters; copy the daemon's `token` again"));
    }
  }
  if (token.empty()) token_problem_ = token_file_ + " is empty";
  return token;
}

std::vector<uid_t> Session::TrustedListeners() const {
  // A token file that the user names is sent to any listener.
  struct stat info = {};
  if (!options.token_file.empty() || stat(TokenFile().c_str(), &info) != 0) return {};
  // The file's owner runs the daemon. A container's port belongs to root.
  return {info.st_uid, geteuid(), 0};
}

absl::StatusOr<client::Client*> Session::Connect() {
  if (client_ != nullptr) return client_.get();
  if (absl::Status status = CheckStateFolder(); !status.ok()) return status;
  absl::StatusOr<std::string> token = Token();
  if (!token.ok()) return token.status();
  client::ConnectionOptions connection;
  connection.address = Address();
  connection.token = *std::move(token);
  connection.tls = options.tls;
  connection.tls_ca_file = options.tls_ca;
  connection.tls_certificate_file = options.tls_certificate;
  connection.tls_key_file = options.tls_key;
  connection.tls_server_name = options.tls_server_name;
  connection.allow_plaintext = options.plaintext;
  connection.trusted_listeners = TrustedListeners();
  connection.timeout = options.timeout;
  client::ReconnectPolicy reconnect;
  reconnect.give_up_after = options.reconnect_timeout;
  absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Create(connection, reconnect);
  if (!client.ok()) return client.status();
  client_ = *std::move(client);
  fetch_display_ = std::make_unique<FetchDisplay>(terminal_, structured(), style_);
  client_->SetFetchObserver(fetch_display_.get());
  wait_display_ = std::make_unique<WaitDisplay>(terminal_);
  client_->SetWaitObserver(wait_display_.get());
  return client_.get();
}

int Session::Print(const google::protobuf::Message& message) {
  terminal_.Out(Structured(options.output, message));
  return kSucceeded;
}

int Session::Fail(const absl::Status& status) {
  // The command stopped because nobody reads its output. RunCommand prints the output's error.
  if (absl::IsCancelled(status) && !terminal_.OutputStatus().ok()) return kOutputLost;
  if (client::IsBeingFetched(status) && terminal_.Interrupted()) {
    terminal_.Err("tandem: the daemon still fetches the data; the same command waits for it again\n");
    return kDetached;
  }
  if (absl::IsCancelled(status) && terminal_.Interrupted()) {
    terminal_.Err("tandem: stopped before the daemon answered; the daemon may still carry the command out\n");
    return kDetached;
  }
  terminal_.Err("tandem: " + Printable(Explain(status)));
  return ExitCodeOf(status);
}

std::string Session::Explain(const absl::Status& status) {
  const std::string address = client_ == nullptr ? Address() : client_->address();
  std::string text;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      if (client_ == nullptr) {
        return absl::StrCat(status.message(), "\nStart one with `tandemd --state-folder ",
                            options.state_folder,
                            "`, or name its address with --address HOST:PORT (or TANDEM_ADDRESS).\n");
      }
      // Only the daemon's own answers have a reason.
      if (!client::ErrorReason(status).empty()) {
        return absl::StrCat("the daemon at ", address, " answers: ", status.message(), "\n");
      }
      text = absl::StrCat("no daemon answers at ", address, ": ", ShortReason(status.message()), "\n");
      absl::StrAppend(&text, ConnectionAdvice(status.message(), address, options, terminal_), "\n");
      break;
    case absl::StatusCode::kDeadlineExceeded:
      // Other messages are the daemon's own answers.
      if (status.message() != "Deadline Exceeded") return absl::StrCat(status.message(), "\n");
      text = absl::StrCat("the daemon at ", address, " did not answer in time; --timeout allows more\n");
      break;
    case absl::StatusCode::kUnauthenticated:
      if (token_problem_.empty()) {
        text = absl::StrCat("the daemon at ", address, " does not accept the token in ", token_file_);
        // The daemon's message about an expired token says more.
        if (absl::StrContains(status.message(), " expired at ")) {
          return absl::StrCat(text, ": ", status.message(), "\n");
        }
        text += ": it may be another daemon's token, or revoked\n";
      } else {
        text = absl::StrCat("the daemon at ", address, " needs its token: ", token_problem_, "\n");
        text += "If the token's file was removed, the daemon creates another token at its next start.\n";
      }
      if (options.token_file.empty()) {
        text +=
            "The daemon's token is the file `token` in its state folder. Name a copy with --token-file (or "
            "TANDEM_TOKEN_FILE).\n";
      } else {
        text += "An administrator makes a new token with `tandem tokens create USER`.\n";
      }
      break;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      text = absl::StrCat("the daemon at ", address, " failed: ", status.message(), "\n");
      break;
    default:
      text = absl::StrCat(status.message(), "\n");
  }
  return text;
}

}  // namespace tandem::cli
