#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"
#include "client/cli/print_table.h"

namespace tandem::cli {
namespace {

int RunCheckpoints(Session& session, const std::string& reference) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  const absl::StatusOr<v1::Job> job = FindJob(**client, reference);
  if (!job.ok()) return session.Fail(job.status());
  // Checkpoints are listed newest first. A newer best result replaces an older one.
  bool found_best = false;
  return PrintTable(session, (*client)->ListCheckpoints(job->name()),
                    absl::StrCat(JobId(job->name()), " has no checkpoints",
                                 job->spec().checkpoints().off() ? ": they are off" : "", "\n"),
                    {{"STEP", true}, {"EPOCHS", true}, {"SIZE", true}, {"BEST"}, {"FILE"}, {"MODEL"}},
                    [&found_best](const v1::Checkpoint& checkpoint) -> std::vector<std::string> {
                      const bool best = checkpoint.best() && !found_best;
                      found_best |= best;
                      return {FormatCount(checkpoint.step()),
                              FormatCount(checkpoint.epoch()),
                              FormatBytes(checkpoint.size_bytes()),
                              best ? "yes" : "-",
                              checkpoint.file(),
                              absl::StrCat("model-", checkpoint.step(), ".safetensors")};
                    });
}

}  // namespace

void AddCheckpoints(Command app, Session& session, int& exit_code) {
  auto reference = std::make_shared<std::string>();
  const Command command = app.AddCommand("checkpoints", "List a job's checkpoints, newest first");
  command.AddOption("JOB", *reference, "The job's id, or the beginning of it").Required();
  command.Action([reference, &session, &exit_code] { exit_code = RunCheckpoints(session, *reference); });
}

}  // namespace tandem::cli
