#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/follow.h"
#include "client/cli/format.h"
#include "client/cli/job_reference.h"
#include "client/cli/job_source.h"
#include "client/cli/request_id.h"

namespace tandem::cli {
namespace {

struct ForkOptions {
  std::string job;
  int64_t step = -1;
  JobSource source;
  bool follow = false;
  bool check = false;
  std::string request_id;
};

int RunFork(Session& session, const ForkOptions& options) {
  if (!CheckOn(session, options.source.on)) return kBadUsage;
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  const absl::StatusOr<v1::Job> from = FindJob(**client, options.job);
  if (!from.ok()) return session.Fail(from.status());
  v1::ForkJobRequest request;
  request.set_name(from->name());
  if (options.step >= 0) request.set_step(options.step);
  client::JobFile file{.name = JobId(from->name()), .spec = from->spec(), .positions = {}};
  if (!ApplyOverrides(session, options.source, &file.spec)) return kBadUsage;
  ApplyOn(options.source.on, &file.spec);
  // Without changes, the request has no spec: the daemon uses the job's present spec.
  if (!options.source.overrides.empty() || !options.source.on.empty()) *request.mutable_spec() = file.spec;
  request.set_request_id(options.request_id.empty() ? RandomRequestId() : options.request_id);
  request.set_validate_only(options.check);
  const absl::StatusOr<v1::Job> job = (*client)->ForkJob(request);
  if (!job.ok()) {
    const int code = FailJob(session, options.source, file, job.status());
    if (!options.check && MayHaveArrived(job.status())) {
      session.terminal().Err(
          absl::StrCat("The daemon may have accepted the job. Fork it again with --request-id ",
                       request.request_id(), ": this never creates a second job.\n"));
    }
    return code;
  }
  const std::string source = absl::StrCat("continue from ", file.name, "'s checkpoint of step ",
                                          FormatCount(job->forked_from().step()));
  if (options.check) {
    if (session.structured()) {
      session.Print(*job);
    } else {
      session.terminal().Out(absl::StrCat("it would ", source, "; no job was submitted\n"));
    }
    return kSucceeded;
  }
  if (session.structured()) {
    if (options.follow) return FollowJob(session, **client, *job, 0, /*plot=*/false);
    return session.Print(*job);
  }
  const std::string id = JobId(job->name());
  session.terminal().Out(absl::StrCat("submitted ", session.style().Bold(id), "\nit will ", source, "\n"));
  if (options.follow) return FollowJob(session, **client, *job, 0, /*plot=*/false);
  session.terminal().Out(absl::StrCat("follow it with: tandem watch ", id, "\n"));
  return kSucceeded;
}

}  // namespace

void AddFork(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<ForkOptions>();
  const Command command =
      app.AddCommand("fork", "Submit a job that continues from a checkpoint of another job");
  command.AddOption("JOB", options->job, "The other job's id, or the beginning of it").Required();
  command.AddOption("--from-checkpoint", options->step, "The checkpoint's step (default: the newest)")
      .ValueName("STEP")
      .AtLeast(0);
  command
      .AddOption(
          "--set", options->source.overrides,
          "Change a field: PATH=VALUE, such as training.epochs=20; network and optimizer cannot change")
      .ValueName("PATH=VALUE")
      .OneValueEach();
  AddOn(command, options->source.on);
  command.AddFlag("-f,--follow", options->follow, "Follow the job until it ends, and return its exit code");
  command.AddFlag("--check", options->check, "Check the job, and submit nothing");
  command.AddOption("--request-id", options->request_id, "An id that makes a repeated command harmless")
      .ValueName("ID");
  command.Action([options, &session, &exit_code] { exit_code = RunFork(session, *options); });
}

}  // namespace tandem::cli
