#include "tests/fault/history_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/util/message_differencer.h"

namespace tandem::testing {
namespace {

struct Move {
  v1::JobState from;
  v1::JobState to;
};

constexpr Move kMoves[] = {
    {v1::JOB_STATE_UNSPECIFIED, v1::JOB_STATE_QUEUED},
    // It gets its devices; or it need not stop, for it has not begun.
    {v1::JOB_STATE_QUEUED, v1::JOB_STATE_STARTING},
    {v1::JOB_STATE_QUEUED, v1::JOB_STATE_CANCELLED},
    {v1::JOB_STATE_QUEUED, v1::JOB_STATE_PAUSED},
    // Back to the queue where its worker was lost or never started.
    {v1::JOB_STATE_STARTING, v1::JOB_STATE_RUNNING},
    {v1::JOB_STATE_STARTING, v1::JOB_STATE_QUEUED},
    {v1::JOB_STATE_STARTING, v1::JOB_STATE_FAILED},
    {v1::JOB_STATE_STARTING, v1::JOB_STATE_CANCELLING},
    {v1::JOB_STATE_STARTING, v1::JOB_STATE_PAUSING},
    {v1::JOB_STATE_STARTING, v1::JOB_STATE_PREEMPTING},
    {v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED},
    {v1::JOB_STATE_RUNNING, v1::JOB_STATE_QUEUED},
    {v1::JOB_STATE_RUNNING, v1::JOB_STATE_FAILED},
    {v1::JOB_STATE_RUNNING, v1::JOB_STATE_CANCELLING},
    {v1::JOB_STATE_RUNNING, v1::JOB_STATE_PAUSING},
    {v1::JOB_STATE_RUNNING, v1::JOB_STATE_PREEMPTING},
    // However its worker ends.
    {v1::JOB_STATE_CANCELLING, v1::JOB_STATE_CANCELLED},
    // The job may have ended before its worker received the command.
    {v1::JOB_STATE_PAUSING, v1::JOB_STATE_PAUSED},
    {v1::JOB_STATE_PAUSING, v1::JOB_STATE_SUCCEEDED},
    {v1::JOB_STATE_PAUSING, v1::JOB_STATE_FAILED},
    {v1::JOB_STATE_PAUSING, v1::JOB_STATE_CANCELLING},
    {v1::JOB_STATE_PREEMPTING, v1::JOB_STATE_QUEUED},
    {v1::JOB_STATE_PREEMPTING, v1::JOB_STATE_SUCCEEDED},
    {v1::JOB_STATE_PREEMPTING, v1::JOB_STATE_FAILED},
    {v1::JOB_STATE_PREEMPTING, v1::JOB_STATE_CANCELLING},
    {v1::JOB_STATE_PREEMPTING, v1::JOB_STATE_PAUSING},
    {v1::JOB_STATE_PAUSED, v1::JOB_STATE_QUEUED},
    {v1::JOB_STATE_PAUSED, v1::JOB_STATE_CANCELLED},
    // The one end that can be taken back.
    {v1::JOB_STATE_FAILED, v1::JOB_STATE_QUEUED},
};

bool IsEnd(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

// Returns whether a job in this state has a worker that reports.
bool HasWorker(v1::JobState state) {
  return !IsEnd(state) && state != v1::JOB_STATE_QUEUED && state != v1::JOB_STATE_PAUSED;
}

std::string StateName(v1::JobState state) {
  return std::string(absl::StripPrefix(v1::JobState_Name(state), "JOB_STATE_"));
}

}  // namespace

bool MayMove(v1::JobState from, v1::JobState to) {
  return std::any_of(std::begin(kMoves), std::end(kMoves),
                     [&](const Move& move) { return move.from == from && move.to == to; });
}

std::string JobLog::Add(const v1::JobEvent& event) {
  const auto [known, is_new] = events_.emplace(event.sequence(), event);
  if (is_new || google::protobuf::util::MessageDifferencer::Equals(known->second, event)) return "";
  return absl::StrCat("event ", event.sequence(), " was seen as { ", known->second.ShortDebugString(),
                      " } and as { ", event.ShortDebugString(), " }");
}

std::optional<v1::JobState> JobLog::StateAt(int64_t sequence) const {
  for (auto event = events_.find(sequence); event != events_.end(); --event, --sequence) {
    if (event->first != sequence) return std::nullopt;
    if (event->second.has_state_change()) return event->second.state_change().to();
    if (event == events_.begin()) return std::nullopt;
  }
  return std::nullopt;
}

std::vector<std::string> JobLog::Faults() const {
  std::vector<std::string> faults;
  // After an event that nobody saw, the state is not known until it changes.
  bool is_known = true;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  int64_t last = 0;
  int32_t attempt = 0;
  for (const auto& [sequence, event] : events_) {
    const auto fault = [&, sequence = sequence](const auto&... text) {
      faults.push_back(absl::StrCat("event ", sequence, " ", text...));
    };
    if (sequence < 1) fault("has a number below 1");
    if (sequence != last + 1) is_known = false;
    last = sequence;
    if (event.attempt() < attempt) fault("is of attempt ", event.attempt(), ", one before is of ", attempt);
    attempt = event.attempt();
    if (event.has_state_change()) {
      const v1::StateChange& change = event.state_change();
      if (is_known && change.from() != state) {
        fault("says that the job was ", StateName(change.from()), ", which was ", StateName(state));
      }
      if (!MayMove(change.from(), change.to())) {
        fault("moves the job from ", StateName(change.from()), " to ", StateName(change.to()),
              ", which no job may");
      }
      if (event.terminal() != IsEnd(change.to())) fault("does not tell rightly whether it is an end");
      state = change.to();
      is_known = true;
      continue;
    }
    if (event.terminal()) fault("is called an end, and is no change of state");
    if (!is_known) continue;
    const bool is_report = !event.has_notice() && !event.has_priority_change();
    if (state == v1::JOB_STATE_UNSPECIFIED) fault("comes before the job was accepted");
    if (IsEnd(state)) fault("follows the job's end as ", StateName(state));
    if (is_report && !HasWorker(state)) fault("is a worker's report, of a job that is ", StateName(state));
  }
  return faults;
}

void JobTimeline::Finish() {
  std::sort(known_.begin(), known_.end());
  int64_t highest = 0;
  for (auto& [time, sequence] : known_) sequence = highest = std::max(highest, sequence);
  std::sort(shown_.begin(), shown_.end());
  int64_t lowest = kGone;
  for (auto shown = shown_.rbegin(); shown != shown_.rend(); ++shown) {
    shown->second = lowest = std::min(lowest, shown->second);
  }
}

int64_t JobTimeline::Least(absl::Duration time) const {
  const auto after = std::lower_bound(known_.begin(), known_.end(), std::pair(time, int64_t{0}));
  return after == known_.begin() ? 0 : std::prev(after)->second;
}

int64_t JobTimeline::Most(absl::Duration time) const {
  const auto after = std::upper_bound(shown_.begin(), shown_.end(), std::pair(time, kGone));
  return after == shown_.end() ? kGone : after->second;
}

}  // namespace tandem::testing
