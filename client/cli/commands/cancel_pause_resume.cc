
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/job_ending.h"
#include "client/cli/job_reference.h"

namespace tandem::cli {
namespace {

// A method of the client's that asks something of one job.
using Request = absl::StatusOr<v1::Job> (client::Client::*)(absl::string_view);

int Run(Session& session, const std::vector<std::string>& references, Request request) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  std::vector<v1::Job> changed;
  int code = kSucceeded;
  for (const std::string& reference : references) {
    absl::StatusOr<v1::Job> job = FindJob(**client, reference);
    if (job.ok()) job = ((*client)->*request)(job->name());
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
    changed.push_back(*std::move(job));
  }
  if (session.structured()) session.terminal().Out(Structured(session.options.output, Pointers(changed)));
  return code;
}

void Add(Command app, const char* name, const char* description, Request request, Session& session,
         int& exit_code) {
  auto references = std::make_shared<std::vector<std::string>>();
  const Command command = app.AddCommand(name, description);
  command.AddOption("JOB", *references, "Ids of jobs or their beginnings").Required();
  command.Action(
      [references, request, &session, &exit_code] { exit_code = Run(session, *references, request); });
}

}  // namespace

void AddCancel(Command app, Session& session, int& exit_code) {
  Add(app, "cancel", "Ask jobs to stop", &client::Client::CancelJob, session, exit_code);
}

void AddPause(Command app, Session& session, int& exit_code) {
  Add(app, "pause", "Ask jobs to write a checkpoint and to stop for now", &client::Client::PauseJob, session,
      exit_code);
}

void AddResume(Command app, Session& session, int& exit_code) {
  Add(app, "resume", "Let paused or failed jobs go on from their last checkpoints",
      &client::Client::ResumeJob, session, exit_code);
}

}  // namespace tandem::cli
