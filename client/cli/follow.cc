#include "client/cli/follow.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/job_display.h"
#include "client/cli/job_reference.h"
#include "client/lib/steady_now.h"

namespace tandem::cli {
namespace {

std::unique_ptr<JobDisplay> MakeDisplay(Session& session, const std::string& id, bool plot) {
  Terminal& terminal = session.terminal();
  if (session.structured()) return MakeStructuredDisplay(terminal, session.options.output);
  if (plot) return MakePlotDisplay(terminal, id);
  if (terminal.Interactive()) return MakeLiveDisplay(terminal, id);
  return MakePlainDisplay(terminal, id);
}

// Tells a display why a job waits and when it may start, because no event has this. Not thread-safe.
class WaitingLooks {
 public:
  // All arguments must outlive this object.
  WaitingLooks(Session& session, client::Client& client, const std::string& name, JobDisplay& display)
      : session_(session),
        client_(client),
        name_(name),
        display_(display),
        next_(client::SteadyNow() + kFirstLook) {}

  void OnState(v1::JobState state) {
    // A STARTING job may wait in a cluster's queue. A stop may wait for the cluster's answer.
    const bool may_wait =
        state == v1::JOB_STATE_QUEUED || state == v1::JOB_STATE_STARTING || IsStopping(state);
    next_ = may_wait ? client::SteadyNow() + kFirstLook : absl::InfiniteDuration();
    stop_waits_ = false;
  }

  void OnTick() {
    // Programs get only events.
    if (session_.structured() || client::SteadyNow() < next_) return;
    const absl::StatusOr<v1::Job> job = client_.GetJob(name_, kLongestLook);
    next_ = client::SteadyNow() + kInterval;
    if (!job.ok()) return;
    v1::Waiting waiting = job->waiting();
    if (job->state() == v1::JOB_STATE_STARTING && job->spec().has_cluster()) {
      if (!job->has_waiting()) {
        // Replaces the cluster's last reason, which no longer holds.
        waiting.set_reason(v1::Waiting::REASON_CLUSTER);
        waiting.set_message("The cluster runs it; its worker has not reported yet.");
      }
    } else if (IsStopping(job->state()) && job->spec().has_cluster()) {
      const bool waited = std::exchange(stop_waits_, job->has_waiting());
      if (!stop_waits_ && !waited) return;
      if (!stop_waits_) {
        // Replaces the cluster's last reason, which no longer holds.
        waiting.set_reason(v1::Waiting::REASON_CLUSTER);
        waiting.set_message("The cluster ends it.");
      }
    } else if (job->state() != v1::JOB_STATE_QUEUED) {
      // The job's events show the rest.
      next_ = absl::InfiniteDuration();
      return;
    }
    session_.MakeShowable(&waiting);
    display_.OnWaiting(waiting);
  }

 private:
  // A job that starts at once needs no such line.
  static constexpr absl::Duration kFirstLook = absl::Seconds(1);
  static constexpr absl::Duration kInterval = absl::Seconds(2);
  // The stream waits during this call.
  static constexpr absl::Duration kLongestLook = absl::Seconds(2);

  static bool IsStopping(v1::JobState state) {
    return state == v1::JOB_STATE_CANCELLING || state == v1::JOB_STATE_PAUSING;
  }

  Session& session_;
  client::Client& client_;
  const std::string& name_;
  JobDisplay& display_;
  absl::Duration next_;  // On SteadyNow's clock.
  // True if the last look found a stop that waits for its cluster.
  bool stop_waits_ = false;
};

}  // namespace

int FollowJob(Session& session, client::Client& client, const v1::Job& job, int64_t after_sequence,
              bool plot) {
  const std::string& name = job.name();
  const std::string id = JobId(name);
  const std::unique_ptr<JobDisplay> display = MakeDisplay(session, id, plot);
  display->SetJob(job);
  WaitingLooks looks(session, client, name, *display);
  StreamNotes observer(
      session.terminal(), [&](absl::string_view note) { display->OnNote(note); },
      [&] {
        display->OnTick();
        looks.OnTick();
      });
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  int64_t last = after_sequence;
  const absl::Status status = client.WatchJob(name, after_sequence, observer, [&](const v1::JobEvent& event) {
    if (event.has_state_change()) {
      state = event.state_change().to();
      looks.OnState(state);
    }
    last = event.sequence();
    v1::JobEvent shown = event;
    session.MakeShowable(&shown);
    display->OnEvent(shown);
  });
  display->Close();
  if (status.ok()) {
    // A stream that starts after the last event has no events.
    if (state != v1::JOB_STATE_UNSPECIFIED) return ExitCodeOf(state);
    const absl::StatusOr<v1::Job> ended = client.GetJob(name);
    return ended.ok() ? ExitCodeOf(ended->state()) : session.Fail(ended.status());
  }
  if (absl::IsCancelled(status) && !session.terminal().OutputStatus().ok()) return kOutputLost;
  if (absl::IsCancelled(status) && session.terminal().Interrupted()) {
    session.terminal().Err(absl::StrCat("detached; the job continues\n  follow it again with: tandem watch ",
                                        id, "\n  cancel it with: tandem cancel ", id, "\n"));
    return kDetached;
  }
  // DATA_LOSS means that an event is missing.
  const int failed = session.Fail(status), code = absl::IsDataLoss(status) ? kNoDaemon : failed;
  if (code == kNoDaemon) {
    session.terminal().Err(
        absl::StrCat("The job may continue without the connection. Follow it again with: tandem watch ", id,
                     " --after ", last, "\n"));
  }
  return code;
}

}  // namespace tandem::cli
