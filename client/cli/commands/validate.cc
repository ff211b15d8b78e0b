#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/job_source.h"

namespace tandem::cli {
namespace {

int RunValidate(Session& session, const JobSource& source) {
  absl::optional<client::JobFile> file = ReadJob(session, source);
  if (!file.has_value()) return kBadUsage;
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  if (const int code = UploadWeights(session, **client, source.weights, &file->spec); code != kSucceeded)
    return code;
  const absl::StatusOr<v1::Job> job = (*client)->CreateJob(file->spec, "", /*validate_only=*/true);
  if (!job.ok()) return FailJob(session, source, *file, job.status());
  if (session.structured()) return session.Print(*job);
  std::string text = absl::StrCat(file->name, " is ", session.style().Green("valid"));
  if (job->planned_memory_bytes() > 0) {
    absl::StrAppend(&text, "; a replica will need ", FormatBytes(job->planned_memory_bytes()), " of memory");
  }
  session.terminal().Out(text + "\n");
  return kSucceeded;
}

}  // namespace

void AddValidate(Command app, Session& session, int& exit_code) {
  auto source = std::make_shared<JobSource>();
  const Command command = app.AddCommand("validate", "Check a job file without submitting it");
  command.AddOption("FILE", source->file, "Job file; `-` is standard input").Required();
  AddChanges(command, *source);
  command.Action([source, &session, &exit_code] { exit_code = RunValidate(session, *source); });
}

}  // namespace tandem::cli
