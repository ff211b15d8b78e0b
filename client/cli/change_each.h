#ifndef TANDEM_CLIENT_CLI_CHANGE_EACH_H_
#define TANDEM_CLIENT_CLI_CHANGE_EACH_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/cli/session.h"

namespace tandem::cli {

// Changes each named object of the daemon, such as a job. Prints `line` of each changed object, or all
// changed objects as JSON or YAML. Prints each error, and continues if the daemon answers. Returns the exit
// code of the last error, or kSucceeded.
template <typename Message>
int ChangeEach(Session& session, const std::vector<std::string>& names,
               const std::function<absl::StatusOr<Message>(client::Client&, const std::string& name)>& change,
               const std::function<std::string(const Message&)>& line) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  std::vector<Message> changed;
  int code = kSucceeded;
  for (const std::string& name : names) {
    absl::StatusOr<Message> message = change(**client, name);
    if (!message.ok()) {
      code = session.Fail(message.status());
      // The next calls would fail in the same way.
      if (code == kNoDaemon) break;
      continue;
    }
    session.MakeShowable(&*message);
    if (!session.structured()) session.terminal().Out(absl::StrCat(line(*message), "\n"));
    changed.push_back(*std::move(message));
  }
  if (session.structured()) session.PrintList(changed);
  return code;
}

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_CHANGE_EACH_H_
