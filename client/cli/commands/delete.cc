#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/job_reference.h"

namespace tandem::cli {
namespace {

int RunDelete(Session& session, const std::vector<std::string>& references) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  std::vector<v1::Job> deleted;
  int code = kSucceeded;
  for (const std::string& reference : references) {
    absl::StatusOr<v1::Job> job = FindJob(**client, reference);
    const absl::Status status = job.ok() ? (*client)->DeleteJob(job->name()) : job.status();
    if (!status.ok()) {
      code = session.Fail(status);
      // The next calls would fail in the same way.
      if (code == kNoDaemon) break;
      continue;
    }
    if (!session.structured()) session.terminal().Out(absl::StrCat(JobId(job->name()), " deleted\n"));
    deleted.push_back(*std::move(job));
  }
  if (session.structured()) session.PrintList(deleted);
  return code;
}

}  // namespace

void AddDelete(Command app, Session& session, int& exit_code) {
  auto references = std::make_shared<std::vector<std::string>>();
  const Command command = app.AddCommand("delete", "Remove jobs that have ended, with their logs and files");
  command.AddOption("JOB", *references, "Ids of jobs or their beginnings").Required();
  command.Action([references, &session, &exit_code] { exit_code = RunDelete(session, *references); });
}

}  // namespace tandem::cli
