#include "tests/fault/history_job_checker.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tandem::testing {
namespace {

constexpr char kStates[] = "2. States";
constexpr char kFreshness[] = "3. Freshness";
constexpr char kCancelling[] = "4. Cancelling";
constexpr char kRefusedJobs[] = "5. Refusals";
constexpr char kEvents[] = "6. Events";

constexpr int64_t kGone = JobTimeline::kGone;

const std::set<v1::JobState>& Ends() {
  static const auto& states =
      *new std::set<v1::JobState>{v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELLED};
  return states;
}

// States that an answer of the method may show.
const std::set<v1::JobState>* Granted(CallKind kind) {
  static const auto& cancel = *new std::set<v1::JobState>{v1::JOB_STATE_CANCELLING, v1::JOB_STATE_CANCELLED};
  static const auto& pause = *new std::set<v1::JobState>{v1::JOB_STATE_PAUSING, v1::JOB_STATE_PAUSED};
  static const auto& resume = *new std::set<v1::JobState>{v1::JOB_STATE_QUEUED, v1::JOB_STATE_STARTING,
                                                          v1::JOB_STATE_RUNNING, v1::JOB_STATE_PREEMPTING};
  return kind == CallKind::kCancel   ? &cancel
         : kind == CallKind::kPause  ? &pause
         : kind == CallKind::kResume ? &resume
                                     : nullptr;
}

// Returns the states in which the method is refused.
std::set<v1::JobState> Refusing(CallKind kind) {
  switch (kind) {
    case CallKind::kCancel:
      return {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED};
    case CallKind::kPause:
      return {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELLED,
              v1::JOB_STATE_CANCELLING};
    case CallKind::kResume:
      return {v1::JOB_STATE_PAUSING, v1::JOB_STATE_CANCELLING, v1::JOB_STATE_CANCELLED,
              v1::JOB_STATE_SUCCEEDED};
    case CallKind::kDelete:
      return {v1::JOB_STATE_QUEUED, v1::JOB_STATE_STARTING,   v1::JOB_STATE_RUNNING,   v1::JOB_STATE_PAUSING,
              v1::JOB_STATE_PAUSED, v1::JOB_STATE_PREEMPTING, v1::JOB_STATE_CANCELLING};
    default:
      return {};
  }
}

std::string JobStateName(v1::JobState state) {
  return std::string(absl::StripPrefix(v1::JobState_Name(state), "JOB_STATE_"));
}

std::string NumberText(int64_t sequence) {
  return sequence == kGone ? "that it was deleted" : absl::StrCat("event ", sequence);
}

}  // namespace

void JobChecker::AddCall(const Call& call) {
  calls_.push_back(&call);
  if (call.kind == CallKind::kDelete && OutcomeOf(call) != Outcome::kRefused) {
    delete_begin_ = std::min(delete_begin_, call.begin);
  }
  if (call.code == grpc::StatusCode::NOT_FOUND ||
      (call.kind == CallKind::kDelete && call.code == grpc::StatusCode::OK)) {
    AddShown({.sequence = kGone, .begin = call.begin, .end = call.end, .call = &call});
  }
  if (call.kind == CallKind::kWatch) AddEvents(call);
}

void JobChecker::AddEvents(const Call& call) {
  for (const SeenEvent& seen : call.events) {
    timeline_.AddKnown(seen.time, seen.event.sequence());
    Know(seen.time, call);
    std::string fault = log_.Add(seen.event);
    if (!fault.empty()) Fault(kEvents, std::move(fault), {call.number});
  }
  if (call.code == grpc::StatusCode::OK) {
    const bool is_empty = call.events.empty();
    AddShown({.sequence = is_empty ? call.after_sequence : call.events.back().event.sequence(),
              .state = is_empty ? v1::JOB_STATE_UNSPECIFIED : call.events.back().event.state_change().to(),
              .begin = call.begin,
              .end = call.end,
              .call = &call});
  }
  if (call.code == grpc::StatusCode::OUT_OF_RANGE) {
    timeline_.AddShown(call.begin, call.after_sequence - 1);
  }
}

void JobChecker::AddSeen(const SeenJob& seen, const Call& call) {
  spec_names_.insert(seen.spec_name);
  Know(seen.end, call);
  AddShown({seen.sequence, seen.state, seen.begin, seen.end, &call});
}

void JobChecker::AddShown(Shown shown) {
  timeline_.AddKnown(shown.end, shown.sequence);
  timeline_.AddShown(shown.begin, shown.sequence);
  shown_.push_back(std::move(shown));
}

void JobChecker::Know(absl::Duration time, const Call& call) {
  if (time >= first_known_) return;
  first_known_ = time;
  first_call_ = call.number;
}

std::vector<Violation> JobChecker::Check(bool is_settled) {
  is_settled_ = is_settled;
  timeline_.Finish();
  CheckLog();
  CheckCounts();
  for (const Shown& shown : shown_) CheckShown(shown);
  for (const Call* call : calls_) CheckCall(*call);
  return std::move(violations_);
}

void JobChecker::CheckLog() {
  for (std::string& fault : log_.Faults()) Fault(kStates, std::move(fault));
  if (!is_settled_ || delete_begin_ != absl::InfiniteDuration()) return;
  if (!log_.is_whole() || log_.newest() == 0) {
    Fault(kEvents, absl::StrCat("of ", log_.newest(), " events only ", log_.events().size(), " were seen"));
  } else if (const std::optional<v1::JobState> last = log_.StateAt(log_.newest());
             !last.has_value() || Ends().count(*last) == 0) {
    Fault(kStates, absl::StrCat("it has not ended: ", last.has_value() ? JobStateName(*last) : "no state"));
  }
}

void JobChecker::CheckCounts() {
  int pauses = 0;
  int resumptions = 0;
  for (const auto& [sequence, event] : log_.events()) {
    if (!event.has_state_change()) continue;
    const v1::JobState from = event.state_change().from();
    const v1::JobState to = event.state_change().to();
    if (to == v1::JOB_STATE_PAUSING || (to == v1::JOB_STATE_PAUSED && from == v1::JOB_STATE_QUEUED)) ++pauses;
    if (from == v1::JOB_STATE_PAUSED && to == v1::JOB_STATE_QUEUED) ++resumptions;
    if (from == v1::JOB_STATE_FAILED && to == v1::JOB_STATE_QUEUED) ++resumptions;
  }
  const auto asked = [this](CallKind kind) {
    return std::count_if(calls_.begin(), calls_.end(), [kind](const Call* call) {
      return call->kind == kind && OutcomeOf(*call) != Outcome::kRefused;
    });
  };
  if (pauses > asked(CallKind::kPause)) {
    Fault(kStates,
          absl::StrCat("it was paused ", pauses, " times; asked for were ", asked(CallKind::kPause)));
  }
  if (resumptions > asked(CallKind::kResume)) {
    Fault(kStates, absl::StrCat("it was let go on ", resumptions, " times; asked for were ",
                                asked(CallKind::kResume)));
  }
}

void JobChecker::CheckShown(const Shown& shown) {
  if (const int64_t least = timeline_.Least(shown.begin); shown.sequence < least) {
    std::vector<int> calls = {shown.call->number};
    for (const Shown& other : shown_) {
      if (other.end < shown.begin && other.sequence > shown.sequence) {
        calls.push_back(other.call->number);
        break;
      }
    }
    Fault(kFreshness,
          absl::StrCat("call #", shown.call->number, " shows ", NumberText(shown.sequence), "; ",
                       NumberText(least), " was known before it was made"),
          std::move(calls));
  }
  if (shown.sequence == kGone || shown.state == v1::JOB_STATE_UNSPECIFIED) return;
  if (const std::optional<v1::JobState> state = log_.StateAt(shown.sequence);
      state.has_value() && *state != shown.state) {
    Fault(kFreshness,
          absl::StrCat("call #", shown.call->number, " shows ", JobStateName(shown.state), " with event ",
                       shown.sequence, ", where the log has ", JobStateName(*state)),
          {shown.call->number});
  }
}

void JobChecker::CheckCall(const Call& call) {
  if (call.kind == CallKind::kWatch) CheckStream(call);
  if (OutcomeOf(call) == Outcome::kRefused) CheckRefusal(call);
  if (call.code != grpc::StatusCode::OK) return;
  if (const std::set<v1::JobState>* granted = Granted(call.kind); granted != nullptr) {
    for (const SeenJob& seen : call.jobs) {
      if (granted->count(seen.state) > 0) continue;
      Fault(kCancelling,
            absl::StrCat(CallKindName(call.kind), " was granted, and shows ", JobStateName(seen.state)),
            {call.number});
    }
  }
  if (call.kind == CallKind::kCancel && is_settled_ && log_.is_whole() &&
      delete_begin_ == absl::InfiniteDuration() && log_.StateAt(log_.newest()) != v1::JOB_STATE_CANCELLED) {
    Fault(kCancelling, "it was cancelled, and did not end so", {call.number});
  }
  if (call.kind == CallKind::kDelete && !MayHaveBeen(call, Ends())) {
    Fault(kRefusedJobs, "it was deleted, and had not ended", {call.number});
  }
}

void JobChecker::CheckStream(const Call& call) {
  int64_t last = call.after_sequence;
  for (const SeenEvent& seen : call.events) {
    if (seen.event.job() != job_) {
      Fault(kEvents, absl::StrCat("a watcher got an event of ", seen.event.job()), {call.number});
    }
    if (seen.event.sequence() != last + 1) {
      Fault(kEvents, absl::StrCat("event ", seen.event.sequence(), " came after ", last), {call.number});
    }
    last = seen.event.sequence();
  }
  if (!call.events.empty() && timeline_.Least(call.begin) == kGone) {
    Fault(kRefusedJobs, "it was deleted, and its events came", {call.number});
  }
  if (call.code == grpc::StatusCode::OK && !call.events.empty() && !call.events.back().event.terminal()) {
    Fault(kEvents, "a stream ended with OK without an end of the job", {call.number});
  }
  if (call.code == grpc::StatusCode::OK && call.events.empty()) {
    const std::optional<v1::JobState> state = log_.StateAt(call.after_sequence);
    if (state.has_value() && Ends().count(*state) == 0) {
      Fault(kEvents, "a stream ended at once, of a job that had not ended", {call.number});
    }
  }
}

void JobChecker::CheckRefusal(const Call& call) {
  if (call.code == grpc::StatusCode::NOT_FOUND) {
    if (delete_begin_ > call.end)
      Fault(kRefusedJobs, "it is not found, and nobody deleted it", {call.number});
  } else if (call.code == grpc::StatusCode::OUT_OF_RANGE) {
    if (timeline_.Least(call.begin) >= call.after_sequence) {
      Fault(kFreshness, absl::StrCat("event ", call.after_sequence, " was known, and is out of range"),
            {call.number});
    }
  } else if (!MayHaveBeen(call, Refusing(call.kind))) {
    Fault(kRefusedJobs,
          absl::StrCat(CallKindName(call.kind), " was refused, and the job was in no state for that"),
          {call.number});
  }
}

bool JobChecker::MayHaveBeen(const Call& call, const std::set<v1::JobState>& states) const {
  const int64_t most = timeline_.Most(call.end);
  for (int64_t sequence = std::max<int64_t>(1, timeline_.Least(call.begin));
       sequence <= std::min(most, log_.newest()); ++sequence) {
    const std::optional<v1::JobState> state = log_.StateAt(sequence);
    if (!state.has_value() || states.count(*state) > 0) return true;
  }
  // Some events may be unknown: the last events of a deleted job, or of a job that continues.
  const bool may_have_more = !is_settled_ || delete_begin_ != absl::InfiniteDuration();
  return may_have_more && most > log_.newest() && timeline_.Least(call.begin) != kGone;
}

void JobChecker::Fault(const char* promise, std::string what, std::vector<int> calls) {
  violations_.push_back({promise, std::move(what), job_, std::move(calls)});
}

}  // namespace tandem::testing
