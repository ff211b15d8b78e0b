#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/job_ending.h"
#include "client/cli/job_reference.h"

namespace tandem::cli {
namespace {

int Run(Session& session, const std::vector<std::string>& references) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  std::vector<v1::Job> cancelled;
  int code = kSucceeded;
  for (const std::string& reference : references) {
    absl::StatusOr<v1::Job> job = FindJob(**client, reference);
    if (job.ok()) job = (*client)->CancelJob(job->name());
    if (!job.ok()) {
      code = session.Fail(job.status());
      // The others would fail likewise.
      if (code == kNoDaemon) break;
      continue;
    }
    if (!session.structured()) {
      session.terminal().Out(
          absl::StrCat(JobId(job->name()), " ", ColoredState(job->state(), session.style()), "\n"));
    }
    cancelled.push_back(*std::move(job));
  }
  if (session.structured()) session.terminal().Out(Structured(session.options.output, Pointers(cancelled)));
  return code;
}

}  // namespace

void AddCancel(CLI::App& app, Session& session, int& exit_code) {
  auto references = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("cancel", "Ask jobs to stop");
  command->add_option("JOB", *references, "Ids of jobs or their beginnings")->required();
  command->callback([references, &session, &exit_code] { exit_code = Run(session, *references); });
}

}  // namespace tandem::cli
