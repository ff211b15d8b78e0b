#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/follow.h"
#include "client/cli/format.h"
#include "client/cli/job_ending.h"
#include "client/cli/job_reference.h"
#include "client/cli/stream_notes.h"
#include "proto/job_file/enum_names.h"

namespace tandem::cli {
namespace {

struct WatchOptions {
  std::string job;
  bool plot = false;
  int64_t after = -1;
};

std::string ChangeLine(Session& session, const v1::WatchJobsResponse& change) {
  const v1::StateChange& state_change = change.state_change();
  const std::string message = state_change.message().empty() ? "" : ": " + Indented(state_change.message());
  return absl::StrCat(
      session.style().Dim(FormatTimestamp(FromProto(change.time()), session.terminal().TimeZone())), "  ",
      JobId(change.job()), "  ", ColoredState(state_change.to(), session.style()), message, "\n");
}

int WatchAll(Session& session, client::Client& client, int64_t after) {
  StreamNotes observer(session.terminal());
  const absl::Status status = client.WatchJobs(after, observer, [&](const v1::WatchJobsResponse& change) {
    v1::WatchJobsResponse shown = change;
    session.MakeShowable(&shown);
    session.terminal().Out(session.structured() ? StreamText(session.options.output, shown)
                                                : ChangeLine(session, shown));
  });
  if (absl::IsCancelled(status) && !session.terminal().OutputStatus().ok()) return kOutputLost;
  // This command has no end of its own, so Ctrl-C is its success.
  if (absl::IsCancelled(status) && session.terminal().Interrupted()) return kSucceeded;
  return session.Fail(status);
}

int RunWatch(Session& session, const WatchOptions& options) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  if (options.job.empty()) {
    if (options.plot)
      return session.Fail(
          absl::InvalidArgumentError("cannot plot all jobs: --plot draws the curves of one job; give JOB"));
    return WatchAll(session, **client, options.after);
  }
  const absl::StatusOr<v1::Job> job = FindJob(**client, options.job);
  if (!job.ok()) return session.Fail(job.status());
  return FollowJob(session, **client, *job, std::max<int64_t>(0, options.after), options.plot);
}

}  // namespace

void AddWatch(Command app, Session& session, int& exit_code) {
  auto options = std::make_shared<WatchOptions>();
  const Command command = app.AddCommand(
      "watch", "Follow a job until it ends, or the state changes of all jobs; jobs continue after Ctrl-C");
  command.AddOption("JOB", options->job, "The job's id, or the beginning of it (default: all jobs)");
  command.AddFlag("--plot", options->plot, "Draw curves of loss and accuracy");
  command
      .AddOption("--after", options->after,
                 "Only events after this sequence number; without a job, changes after this cursor (0: all)")
      .ValueName("N")
      .AtLeast(0);
  command.Action([options, &session, &exit_code] { exit_code = RunWatch(session, *options); });
}

}  // namespace tandem::cli
