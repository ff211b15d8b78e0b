#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"

namespace tandem::cli {
namespace {

int RunShutdown(Session& session, bool cancel_jobs) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  const absl::StatusOr<int> cancelled = (*client)->Shutdown(cancel_jobs);
  if (!cancelled.ok()) return session.Fail(cancelled.status());
  if (session.structured()) {
    v1::ShutdownResponse response;
    response.set_cancelled_jobs(*cancelled);
    session.Print(response);
  } else if (cancel_jobs) {
    session.terminal().Out(absl::StrCat("the daemon at ", (*client)->address(), " stops; ", *cancelled,
                                        *cancelled == 1 ? " job was" : " jobs were", " cancelled\n"));
  } else {
    session.terminal().Out(
        absl::StrCat("the daemon at ", (*client)->address(),
                     " stops; running jobs continue, and the next daemon takes them over\n"));
  }
  return kSucceeded;
}

}  // namespace

void AddShutdown(Command app, Session& session, int& exit_code) {
  auto cancel_jobs = std::make_shared<bool>(false);
  const Command command = app.AddCommand("shutdown", "Stop the daemon; running jobs continue");
  command.AddFlag("--cancel-jobs", *cancel_jobs, "Cancel all jobs first and wait until they have ended");
  command.Action([cancel_jobs, &session, &exit_code] { exit_code = RunShutdown(session, *cancel_jobs); });
}

}  // namespace tandem::cli
