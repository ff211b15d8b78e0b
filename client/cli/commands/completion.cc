#include "client/cli/completion.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/datasets.h"
#include "client/cli/job_reference.h"

namespace tandem::cli {
namespace {

// The ids of the newest jobs, for the scripts.
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

// The names of the data sets.
int ListDatasets(Session& session) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return ExitCodeOf(client.status());
  const absl::StatusOr<std::vector<v1::Dataset>> datasets = (*client)->ListDatasets();
  if (!datasets.ok()) return ExitCodeOf(datasets.status());
  for (const v1::Dataset& dataset : *datasets) session.terminal().Out(DatasetId(dataset) + "\n");
  return kSucceeded;
}

// The ids of the newest sweeps.
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

void AddCompletion(CLI::App& app, Session& session, int& exit_code) {
  CLI::App* ids = app.add_subcommand("__jobs", "");
  ids->group("");
  ids->fallthrough();
  ids->callback([&session, &exit_code] { exit_code = ListIds(session); });
  CLI::App* datasets = app.add_subcommand("__datasets", "");
  datasets->group("");
  datasets->fallthrough();
  datasets->callback([&session, &exit_code] { exit_code = ListDatasets(session); });
  CLI::App* sweeps = app.add_subcommand("__sweeps", "");
  sweeps->group("");
  sweeps->fallthrough();
  sweeps->callback([&session, &exit_code] { exit_code = ListSweeps(session); });

  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion", "Print a script that completes commands: source <(tandem completion bash)");
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([shell, &app, &session, &exit_code] {
    session.terminal().Out(*shell == "bash"  ? BashCompletion(app)
                           : *shell == "zsh" ? ZshCompletion(app)
                                             : FishCompletion(app));
    exit_code = kSucceeded;
  });
}

}  // namespace tandem::cli
