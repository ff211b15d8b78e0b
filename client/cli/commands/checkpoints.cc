#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"
#include "client/cli/table.h"

namespace tandem::cli {
namespace {

int RunCheckpoints(Session& session, const std::string& reference) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  const absl::StatusOr<v1::Job> job = FindJob(**client, reference);
  if (!job.ok()) return session.Fail(job.status());
  absl::StatusOr<std::vector<v1::Checkpoint>> checkpoints = (*client)->ListCheckpoints(job->name());
  if (!checkpoints.ok()) return session.Fail(checkpoints.status());
  for (v1::Checkpoint& checkpoint : *checkpoints) session.MakeShowable(&checkpoint);
  if (session.structured()) return session.PrintList(*checkpoints);
  if (checkpoints->empty()) {
    session.terminal().Out(absl::StrCat(JobId(job->name()), " has no checkpoints",
                                        job->spec().checkpoints().off() ? ": they are off" : "", "\n"));
    return kSucceeded;
  }
  Table table({{"STEP", true}, {"EPOCHS", true}, {"SIZE", true}, {"BEST"}, {"FILE"}});
  for (const v1::Checkpoint& checkpoint : *checkpoints) {
    table.AddRow({FormatCount(checkpoint.step()), FormatCount(checkpoint.epoch()),
                  FormatBytes(checkpoint.size_bytes()), checkpoint.best() ? "yes" : "-", checkpoint.file()});
  }
  session.terminal().Out(table.Render(session.style()));
  return kSucceeded;
}

}  // namespace

void AddCheckpoints(Command app, Session& session, int& exit_code) {
  auto reference = std::make_shared<std::string>();
  const Command command = app.AddCommand("checkpoints", "List a job's checkpoints, newest first");
  command.AddOption("JOB", *reference, "The job's id, or the beginning of it").Required();
  command.Action([reference, &session, &exit_code] { exit_code = RunCheckpoints(session, *reference); });
}

}  // namespace tandem::cli
