#ifndef TANDEM_CLIENT_CLI_SESSION_H_
#define TANDEM_CLIENT_CLI_SESSION_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/exit_code.h"
#include "client/cli/fetch_display.h"
#include "client/cli/output.h"
#include "client/cli/printable.h"
#include "client/cli/style.h"
#include "client/cli/terminal.h"
#include "client/cli/wait_display.h"
#include "client/lib/client.h"

namespace tandem::cli {

// The options that every command takes. Empty text: not given.
struct GlobalOptions {
  OutputFormat output = OutputFormat::kTable;
  std::string address;
  std::string state_folder;
  std::string token_file;
  bool tls = false;
  std::string tls_ca;
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_server_name;
  bool plaintext = false;
  absl::Duration timeout = absl::Seconds(30);
  absl::Duration reconnect_timeout = absl::Seconds(60);
};

// What one run of a command works with: options, terminal, and the connection, which is made when it is first
// asked for. Not thread-safe.
class Session {
 public:
  explicit Session(Terminal& terminal) : terminal_(terminal), style_(terminal.Color()) {}

  GlobalOptions options;

  Terminal& terminal() { return terminal_; }
  // Of standard output.
  const Style& style() const { return style_; }
  bool structured() const {
    return options.output == OutputFormat::kJson || options.output == OutputFormat::kYaml;
  }
  bool wide() const { return options.output == OutputFormat::kWide; }

  // The client. INVALID_ARGUMENT: the options allow none.
  absl::StatusOr<client::Client*> Connect();

  // An error in a line, and below it what can be done about it, where something can; a newline at the end.
  std::string Explain(const absl::Status& status);

  // Says an error on standard error, with what can be done about it, and gives its exit code.
  int Fail(const absl::Status& status);

  // The daemon's messages as they may be shown: see MakePrintable. JSON and YAML need no such thing.
  void MakeShowable(google::protobuf::Message* message) const {
    if (!structured()) MakePrintable(message);
  }

  // The address in use: as given, else what the daemon on this machine wrote, else the default.
  std::string Address();
  // The folder of this machine's daemon.
  std::string StateFolder() const;
  // The file that the token is read from.
  std::string TokenFile() const;

 private:
  // The daemon's token, or "" and why in token_problem_.
  absl::StatusOr<std::string> Token();
  // UNAVAILABLE: a state folder is named, and no daemon has written its address there. INVALID_ARGUMENT: what
  // it wrote cannot be read. Another daemon's, at the default address, is not meant.
  absl::Status CheckStateFolder() const;
  // Where the token is the state folder's own, the administrator's: those who may have it.
  std::vector<uid_t> TrustedListeners() const;

  Terminal& terminal_;
  const Style style_;
  // Before the client, which it outlives.
  std::unique_ptr<FetchDisplay> fetch_display_;
  std::unique_ptr<WaitDisplay> wait_display_;
  std::unique_ptr<client::Client> client_;
  std::string token_file_;
  std::string token_problem_;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_SESSION_H_
