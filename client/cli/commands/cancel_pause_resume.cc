#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/change_each.h"
#include "client/cli/commands/commands.h"
#include "client/cli/job_ending.h"
#include "client/cli/job_reference.h"

namespace tandem::cli {
namespace {

// A call that changes a job.
using Request = std::function<absl::StatusOr<v1::Job>(client::Client&, const std::string& name)>;

int RunOnEach(Session& session, const std::vector<std::string>& references, const Request& request) {
  return ChangeEach<v1::Job>(
      session, references,
      [&](client::Client& client, const std::string& reference) {
        absl::StatusOr<v1::Job> job = FindJobToChange(client, reference);
        if (job.ok()) job = request(client, job->name());
        return job;
      },
      [&](const v1::Job& job) {
        return absl::StrCat(JobId(job.name()), " ", ColoredState(job.state(), session.style()));
      });
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
