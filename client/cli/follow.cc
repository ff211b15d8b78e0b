#include "client/cli/follow.h"

#include "absl/strings/str_cat.h"
#include "client/cli/job_display.h"
#include "client/cli/job_reference.h"

namespace tandem::cli {
namespace {

std::unique_ptr<JobDisplay> MakeDisplay(Session& session, const std::string& id, bool plot) {
  Terminal& terminal = session.terminal();
  if (session.options.output == OutputFormat::kJson) return MakeJsonDisplay(terminal);
  if (session.options.output == OutputFormat::kYaml) return MakeYamlDisplay(terminal);
  if (plot) return MakePlotDisplay(terminal, id);
  if (terminal.Interactive()) return MakeLiveDisplay(terminal, id);
  return MakePlainDisplay(terminal, id);
}

}  // namespace

int FollowJob(Session& session, client::Client& client, const std::string& name, int64_t after_sequence,
              bool plot) {
  const std::string id = JobId(name);
  const std::unique_ptr<JobDisplay> display = MakeDisplay(session, id, plot);
  StreamNotes observer(
      session.terminal(), [&](absl::string_view note) { display->OnNote(note); }, [&] { display->OnTick(); });
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  int64_t last = after_sequence;
  const absl::Status status = client.WatchJob(name, after_sequence, observer, [&](const v1::JobEvent& event) {
    if (event.has_state_change()) state = event.state_change().to();
    last = event.sequence();
    v1::JobEvent shown = event;
    session.MakeShowable(&shown);
    display->OnEvent(shown);
  });
  display->Close();
  if (status.ok()) {
    // A job that was watched from its last event on gave none.
    if (state != v1::JOB_STATE_UNSPECIFIED) return ExitCodeOf(state);
    const absl::StatusOr<v1::Job> job = client.GetJob(name);
    return job.ok() ? ExitCodeOf(job->state()) : session.Fail(job.status());
  }
  if (absl::IsCancelled(status) && !session.terminal().OutputStatus().ok()) return kOutputLost;
  if (absl::IsCancelled(status) && session.terminal().Interrupted()) {
    session.terminal().Err(absl::StrCat("detached; the job goes on\n  come back with: tandem watch ", id,
                                        "\n  cancel it with: tandem cancel ", id, "\n"));
    return kDetached;
  }
  // DATA_LOSS: an event got lost on the way.
  const int failed = session.Fail(status), code = absl::IsDataLoss(status) ? kNoDaemon : failed;
  if (code == kNoDaemon) {
    session.terminal().Err(absl::StrCat("The job may go on without it. Come back with: tandem watch ", id,
                                        " --after ", last, "\n"));
  }
  return code;
}

}  // namespace tandem::cli
