#include "client/cli/completion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"

namespace tandem::cli {
namespace {

// Prints the ids of the newest jobs, for the completion scripts.
int ListIds(Session& session) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return ExitCodeOf(client.status());
  client::ListJobsOptions newest;
  newest.limit = 200;
  const absl::StatusOr<std::vector<v1::Job>> jobs = (*client)->ListJobs(newest);
  if (!jobs.ok()) return ExitCodeOf(jobs.status());
  for (const v1::Job& job : *jobs) session.terminal().Out(JobId(job.name()) + "\n");
  return kSucceeded;
}

// Prints the names of the data sets.
int ListNames(Session& session) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return ExitCodeOf(client.status());
  const absl::StatusOr<std::vector<v1::Dataset>> datasets = (*client)->ListDatasets(session.options.timeout);
  if (!datasets.ok()) return ExitCodeOf(datasets.status());
  for (const v1::Dataset& dataset : *datasets) session.terminal().Out(ShortName(dataset.name()) + "\n");
  return kSucceeded;
}

// Prints the ids of the newest sweeps.
int ListSweeps(Session& session) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return ExitCodeOf(client.status());
  const absl::StatusOr<std::vector<v1::Sweep>> sweeps = (*client)->ListSweeps(/*limit=*/200);
  if (!sweeps.ok()) return ExitCodeOf(sweeps.status());
  for (const v1::Sweep& sweep : *sweeps) {
    session.terminal().Out(absl::StrCat(absl::StripPrefix(sweep.name(), "sweeps/"), "\n"));
  }
  return kSucceeded;
}

}  // namespace

void AddCompletion(Command app, Session& session, int& exit_code) {
  const Command ids = app.AddCommand("__jobs", "");
  ids.Hide();
  ids.TakeGlobalOptions();
  ids.Action([&session, &exit_code] { exit_code = ListIds(session); });
  const Command datasets = app.AddCommand("__datasets", "");
  datasets.Hide();
  datasets.TakeGlobalOptions();
  datasets.Action([&session, &exit_code] { exit_code = ListNames(session); });
  const Command sweeps = app.AddCommand("__sweeps", "");
  sweeps.Hide();
  sweeps.TakeGlobalOptions();
  sweeps.Action([&session, &exit_code] { exit_code = ListSweeps(session); });

  auto shell = std::make_shared<std::string>();
  const Command command = app.AddCommand(
      "completion", "Print a script that completes commands: source <(tandem completion bash)");
  command.AddOption("SHELL", *shell, "bash, zsh or fish").Required().OneOf({"bash", "zsh", "fish"});
  command.Action([shell, app, &session, &exit_code] {
    session.terminal().Out(*shell == "bash"  ? BashCompletion(app.app())
                           : *shell == "zsh" ? ZshCompletion(app.app())
                                             : FishCompletion(app.app()));
    exit_code = kSucceeded;
  });
}

}  // namespace tandem::cli
