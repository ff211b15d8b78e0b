#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/job_ending.h"
#include "client/cli/job_reference.h"

namespace tandem::cli {
namespace {

// A call that changes a job.
using Request = std::function<absl::StatusOr<v1::Job>(client::Client&, const std::string& name)>;

int RunOnEach(Session& session, const std::vector<std::string>& references, const Request& request) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  std::vector<v1::Job> changed;
  int code = kSucceeded;
  for (const std::string& reference : references) {
    absl::StatusOr<v1::Job> job = FindJob(**client, reference);
    if (job.ok()) job = request(**client, job->name());
    if (!job.ok()) {
      code = session.Fail(job.status());
      // The next calls would fail in the same way.
      if (code == kNoDaemon) break;
      continue;
    }
    if (!session.structured()) {
      session.terminal().Out(
          absl::StrCat(JobId(job->name()), " ", ColoredState(job->state(), session.style()), "\n"));
    }
    changed.push_back(*std::move(job));
  }
  if (session.structured()) session.PrintList(changed);
  return code;
}

Command Add(Command app, const char* name, const char* description, Request request, Session& session,
            int& exit_code) {
  auto references = std::make_shared<std::vector<std::string>>();
  const Command command = app.AddCommand(name, description);
  command.AddOption("JOB", *references, "Ids of jobs, or the beginnings of them").Required();
  command.Action([references, request = std::move(request), &session, &exit_code] {
    exit_code = RunOnEach(session, *references, request);
  });
  return command;
}

}  // namespace

void AddCancel(Command app, Session& session, int& exit_code) {
  Add(
      app, "cancel", "Stop jobs",
      [](client::Client& client, const std::string& name) { return client.CancelJob(name); }, session,
      exit_code);
}

void AddPause(Command app, Session& session, int& exit_code) {
  Add(
      app, "pause", "Write checkpoints of jobs and stop them until `resume`",
      [](client::Client& client, const std::string& name) { return client.PauseJob(name); }, session,
      exit_code);
}

void AddResume(Command app, Session& session, int& exit_code) {
  auto accept = std::make_shared<bool>(false);
  const Command command = Add(
      app, "resume", "Continue paused or failed jobs from their last checkpoints",
      [accept](client::Client& client, const std::string& name) { return client.ResumeJob(name, *accept); },
      session, exit_code);
  command.AddFlag("--accept-changed-data", *accept,
                  "Resume jobs even if their data changed after their checkpoints");
}

}  // namespace tandem::cli
