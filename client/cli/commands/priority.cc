#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/job_reference.h"

namespace tandem::cli {
namespace {

struct PriorityOptions {
  std::string job;
  int priority = 0;
};

int RunPriority(Session& session, const PriorityOptions& options) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  absl::StatusOr<v1::Job> job = FindJobToChange(**client, options.job);
  if (job.ok()) job = (*client)->SetPriority(job->name(), options.priority);
  if (!job.ok()) return session.Fail(job.status());
  session.MakeShowable(&*job);
  session.terminal().Out(session.structured()
                             ? Structured(session.options.output, *job)
                             : absl::StrCat(JobId(job->name()), " priority ", job->priority(), "\n"));
  return kSucceeded;
}

}  // namespace

void AddPriority(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<PriorityOptions>();
  const Command command = app.AddCommand("priority", "Change the priority of a job that has not ended");
  command.AddOption("JOB", options->job, "The job's id, or the beginning of it").Required();
  command
      .AddOption("PRIORITY", options->priority,
                 "From -100 to 100; jobs of a higher priority start first. Only administrators may give a "
                 "priority above 0")
      .Required()
      .Range(-100, 100);
  command.Action([options, &session, &exit_code] { exit_code = RunPriority(session, *options); });
}

}  // namespace tandem::cli
