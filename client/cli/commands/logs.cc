#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/job_reference.h"
#include "client/cli/stream_notes.h"
#include "client/cli/waiting_text.h"

namespace tandem::cli {
namespace {

struct LogsOptions {
  std::string job;
  int rank = 0;
  bool follow = false;
};

int RunLogs(Session& session, const LogsOptions& options) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  const absl::StatusOr<v1::Job> job = FindJob(**client, options.job);
  if (!job.ok()) return session.Fail(job.status());
  if (job->state() == v1::JOB_STATE_QUEUED) {
    const std::string why = WaitingText(job->waiting(), session.terminal().Now());
    session.terminal().Err(
        Printable(absl::StrCat(JobId(job->name()), " waits", why.empty() ? "" : ": ", why, "\n")));
  }
  StreamNotes observer(session.terminal());
  const absl::Status status =
      (*client)->ReadLog(job->name(), options.rank, 0, options.follow, observer, [&](absl::string_view data) {
        // A pipe or a file gets the exact bytes.
        session.terminal().Out(session.terminal().Interactive() ? Printable(data) : std::string(data));
        return absl::OkStatus();
      });
  if (absl::IsCancelled(status) && !session.terminal().OutputStatus().ok()) return kOutputLost;
  if (absl::IsCancelled(status) && session.terminal().Interrupted()) return kDetached;
  return status.ok() ? kSucceeded : session.Fail(status);
}

}  // namespace

void AddLogs(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<LogsOptions>();
  const Command command = app.AddCommand("logs", "Print the log of a job's worker");
  command.AddOption("JOB", options->job, "The job's id, or the beginning of it").Required();
  command.AddOption("--rank", options->rank, "Print the log of the worker with this rank")
      .ShowDefault()
      .AtLeast(0);
  command.AddFlag("-f,--follow", options->follow, "Follow the log until the job ends");
  command.Action([options, &session, &exit_code] { exit_code = RunLogs(session, *options); });
}

}  // namespace tandem::cli
