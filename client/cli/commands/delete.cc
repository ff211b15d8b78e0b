#include "absl/strings/str_cat.h"
#include "client/cli/change_each.h"
#include "client/cli/commands/commands.h"
#include "client/cli/job_reference.h"

namespace tandem::cli {
namespace {

int RunDelete(Session& session, const std::vector<std::string>& references) {
  return ChangeEach<v1::Job>(
      session, references,
      [](client::Client& client, const std::string& reference) -> absl::StatusOr<v1::Job> {
        absl::StatusOr<v1::Job> job = FindJobToChange(client, reference);
        if (!job.ok()) return job;
        if (absl::Status deleted = client.DeleteJob(job->name()); !deleted.ok()) return deleted;
        return job;
      },
      [](const v1::Job& job) { return absl::StrCat(JobId(job.name()), " deleted"); });
}

}  // namespace

void AddDelete(Command app, Session& session, int& exit_code) {
  auto references = std::make_shared<std::vector<std::string>>();
  const Command command = app.AddCommand("delete", "Remove jobs that have ended, with their logs and files");
  command.AddOption("JOB", *references, "Ids of jobs or their beginnings").Required();
  command.Action([references, &session, &exit_code] { exit_code = RunDelete(session, *references); });
}

}  // namespace tandem::cli
