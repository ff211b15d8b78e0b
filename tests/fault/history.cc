#include "tests/fault/history.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace tandem::testing {
namespace {

std::string StateText(v1::JobState state) {
  return std::string(absl::StripPrefix(v1::JobState_Name(state), "JOB_STATE_"));
}

std::string EventsText(const Call& call) {
  if (call.events.empty()) return " no events";
  std::string text;
  for (const SeenEvent& seen : call.events) {
    absl::StrAppend(&text, " ", seen.event.sequence());
    if (seen.event.has_state_change()) {
      absl::StrAppend(&text, ":", StateText(seen.event.state_change().to()));
    }
  }
  return text;
}

std::string JobsText(const Call& call) {
  // For a list, the number of its jobs.
  if (call.kind == CallKind::kList) return absl::StrCat(" ", call.jobs.size(), " jobs");
  std::string text;
  for (const SeenJob& seen : call.jobs) {
    absl::StrAppend(&text, " ", seen.job, " ", StateText(seen.state), "@", seen.sequence);
  }
  return text;
}

}  // namespace

absl::string_view CallKindName(CallKind kind) {
  switch (kind) {
    case CallKind::kCreate:
      return "CreateJob";
    case CallKind::kGet:
      return "GetJob";
    case CallKind::kList:
      return "ListJobs";
    case CallKind::kCancel:
      return "CancelJob";
    case CallKind::kPause:
      return "PauseJob";
    case CallKind::kResume:
      return "ResumeJob";
    case CallKind::kDelete:
      return "DeleteJob";
    case CallKind::kWatch:
      return "WatchJob";
  }
  return "unknown";
}

Outcome OutcomeOf(const Call& call) {
  switch (call.code) {
    case grpc::StatusCode::OK:
      return Outcome::kDone;
    // If a call reaches a server just when it shuts down, gRPC answers CANCELLED, although no client asked
    // for it.
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
      return Outcome::kUnknown;
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::ALREADY_EXISTS:
      return call.kind == CallKind::kCreate ? Outcome::kRefused : Outcome::kUnexpected;
    case grpc::StatusCode::NOT_FOUND:
      return call.job.empty() ? Outcome::kUnexpected : Outcome::kRefused;
    case grpc::StatusCode::FAILED_PRECONDITION:
      return call.kind == CallKind::kCancel || call.kind == CallKind::kPause ||
                     call.kind == CallKind::kResume || call.kind == CallKind::kDelete
                 ? Outcome::kRefused
                 : Outcome::kUnexpected;
    case grpc::StatusCode::OUT_OF_RANGE:
      return call.kind == CallKind::kWatch ? Outcome::kRefused : Outcome::kUnexpected;
    default:
      return Outcome::kUnexpected;
  }
}

std::string Describe(const Call& call) {
  const auto seconds = [](absl::Duration time) { return absl::ToDoubleSeconds(time); };
  std::string text =
      absl::StrFormat("%9.6f to %9.6f  #%d client %d  %s %s", seconds(call.begin), seconds(call.end),
                      call.number, call.client, CallKindName(call.kind), call.job);
  if (call.kind == CallKind::kCreate) {
    absl::StrAppend(&text, call.request_id, " of ", call.spec_name, call.is_valid ? "" : " (wrong)");
  }
  if (call.kind == CallKind::kWatch) absl::StrAppend(&text, " after ", call.after_sequence);
  for (const v1::JobState state : call.states) absl::StrAppend(&text, " ", StateText(state));
  absl::StrAppend(&text, " ->", call.kind == CallKind::kWatch ? EventsText(call) : JobsText(call));
  if (call.code != grpc::StatusCode::OK) {
    absl::StrAppend(&text, " code ", static_cast<int>(call.code), " (", call.message.substr(0, 80), ")");
  }
  return text;
}

}  // namespace tandem::testing
