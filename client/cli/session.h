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

// The options of every command. An empty text is an option that is not given.
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

// The options, the terminal and the connection of a command. The first call of Connect connects. Not
// thread-safe.
class Session {
 public:
  explicit Session(Terminal& terminal) : terminal_(terminal), style_(terminal.Color()) {}

  GlobalOptions options;

  Terminal& terminal() { return terminal_; }
  // The style of standard output.
  const Style& style() const { return style_; }
  bool structured() const {
    return options.output == OutputFormat::kJson || options.output == OutputFormat::kYaml;
  }
  bool wide() const { return options.output == OutputFormat::kWide; }

  // Returns the client. INVALID_ARGUMENT if the options are wrong for a connection.
  absl::StatusOr<client::Client*> Connect();

  // Returns an error as a line, with advice in the lines below if there is any. Ends with a newline.
  std::string Explain(const absl::Status& status);

  // Prints an error with its advice to standard error. Returns its exit code.
  int Fail(const absl::Status& status);

  // Print a result, or a list of results, as JSON or YAML. structured() must be true. Return kSucceeded.
  int Print(const google::protobuf::Message& message);
  template <typename List>
  int PrintList(const List& messages) {
    terminal_.Out(Structured(options.output, Pointers(messages)));
    return kSucceeded;
  }

  // Makes a message from the daemon safe to show; see MakePrintable. JSON and YAML need no change.
  void MakeShowable(google::protobuf::Message* message) const {
    if (!structured()) MakePrintable(message);
  }

  // Returns the address in use: the given address, or the address that the daemon on this machine wrote, or
  // the default.
  std::string Address();
  // Returns the state folder of this machine's daemon.
  std::string StateFolder() const;
  // Returns the path of the token file.
  std::string TokenFile() const;

 private:
  // Returns the token. Without a token, returns "" and sets token_problem_.
  absl::StatusOr<std::string> Token();
  // Checks the address in a given state folder. UNAVAILABLE if no daemon has written its address there: the
  // default address may be another daemon's. INVALID_ARGUMENT if the address cannot be read.
  absl::Status CheckStateFolder() const;
  // Returns the users that may get the token, if it is the administrator's token in the state folder.
  std::vector<uid_t> TrustedListeners() const;

  Terminal& terminal_;
  const Style style_;
  // Declared before the client, so that the display outlives it.
  std::unique_ptr<FetchDisplay> fetch_display_;
  std::unique_ptr<WaitDisplay> wait_display_;
  std::unique_ptr<client::Client> client_;
  std::string token_file_;
  std::string token_problem_;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_SESSION_H_
