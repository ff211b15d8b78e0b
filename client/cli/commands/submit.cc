#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/follow.h"
#include "client/cli/job_ending.h"
#include "client/cli/job_reference.h"
#include "client/cli/job_source.h"
#include "client/cli/request_id.h"

namespace tandem::cli {
namespace {

struct SubmitOptions {
  JobSource source;
  bool follow = false;
  bool plot = false;
  std::string request_id;
};

int RunSubmit(Session& session, const SubmitOptions& options) {
  absl::optional<client::JobFile> file = ReadJob(session, options.source);
  if (!file.has_value()) return kBadUsage;
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  if (const int code = UploadWeights(session, **client, options.source.weights, &file->spec);
      code != kSucceeded)
    return code;
  const std::string request_id = options.request_id.empty() ? RandomRequestId() : options.request_id;
  const absl::StatusOr<v1::Job> job = (*client)->CreateJob(file->spec, request_id, /*validate_only=*/false);
  if (!job.ok()) {
    const int code = FailJob(session, options.source, *file, job.status());
    if (MayHaveArrived(job.status())) {
      session.terminal().Err(
          absl::StrCat("The daemon may have accepted the job. Submit it again with --request-id ", request_id,
                       ": this never creates a second job.\n"));
    }
    return code;
  }
  const std::string id = JobId(job->name());
  const bool follow = options.follow || options.plot;
  if (session.structured()) {
    if (follow) return FollowJob(session, **client, *job, 0, options.plot);
    return session.Print(*job);
  }
  const Style& style = session.style();
  session.terminal().Out(absl::StrCat("submitted ", style.Bold(id), "\n"));
  if (follow) return FollowJob(session, **client, *job, 0, options.plot);
  session.terminal().Out(absl::StrCat("follow it with: tandem watch ", id, "\n"));
  return kSucceeded;
}

}  // namespace

void AddSubmit(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<SubmitOptions>();
  const Command command = app.AddCommand("submit", "Send a job to the daemon");
  command.AddOption("FILE", options->source.file, "Job file: YAML, JSON or text proto; `-` is standard input")
      .Required();
  command.AddFlag("-f,--follow", options->follow, "Follow the job until it ends, and return its exit code");
  command.AddFlag("--plot", options->plot, "Follow with curves of loss and accuracy");
  AddChanges(command, options->source);
  command.AddOption("--request-id", options->request_id, "An id that makes a repeated command harmless")
      .ValueName("ID");
  command.Action([options, &session, &exit_code] { exit_code = RunSubmit(session, *options); });
}

}  // namespace tandem::cli
