#include "client/cli/version.h"

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"

namespace tandem::cli {
namespace {

int RunVersion(Session& session) {
  // The command also works without a daemon, so the wait for an answer is short.
  session.options.timeout = std::min(session.options.timeout, absl::Seconds(5));
  const absl::StatusOr<client::Client*> client = session.Connect();
  absl::StatusOr<v1::Daemon> daemon = client.ok() ? (*client)->GetDaemon() : client.status();
  if (session.options.output == OutputFormat::kJson) {
    session.terminal().Out(absl::StrCat(
        "{\"client\": \"", kVersion,
        "\", \"daemon\": ", daemon.ok() ? absl::StrCat("\"", daemon->version(), "\"") : "null", "}\n"));
  } else {
    session.terminal().Out(absl::StrCat("client: ", kVersion, "\ndaemon: ",
                                        daemon.ok()            ? daemon->version()
                                        : session.structured() ? "null"
                                                               : absl::StrCat("none at ", session.Address()),
                                        "\n"));
  }
  return kSucceeded;
}

}  // namespace

void AddVersion(Command app, Session& session, int& exit_code) {
  const Command command = app.AddCommand("version", "Print the versions of this command and of the daemon");
  command.Action([&session, &exit_code] { exit_code = RunVersion(session); });
}

}  // namespace tandem::cli
