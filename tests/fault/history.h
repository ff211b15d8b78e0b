#ifndef TANDEM_TESTS_FAULT_HISTORY_H_
#define TANDEM_TESTS_FAULT_HISTORY_H_

#include <grpcpp/support/status.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tandem/v1/event.pb.h"

namespace tandem::testing {

// What clients asked of a daemon and were told, with times; plain data. All times are since the history's
// beginning, by one clock that does not jump.

// Which method was called.
enum class CallKind { kCreate, kGet, kList, kCancel, kPause, kResume, kDelete, kWatch };

// "CreateJob", ...
absl::string_view CallKindName(CallKind kind);

// A job as an answer showed it.
struct SeenJob {
  // "jobs/<id>".
  std::string job;
  // JobSpec.name, which no two requests for different jobs share: so a job tells which request made it.
  std::string spec_name;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  // Job.last_sequence.
  int64_t sequence = 0;
  // When the call, or the page of a list, that showed it was asked for and had come.
  absl::Duration begin;
  absl::Duration end;
};

// An event as a watcher got it.
struct SeenEvent {
  v1::JobEvent event;
  absl::Duration time;
};

// One call and how it was answered.
struct Call {
  // Its place in History::calls, for people.
  int number = 0;
  int client = 0;
  CallKind kind = CallKind::kGet;
  // Of which job; empty for CreateJob and ListJobs.
  std::string job;
  // CreateJob's: the request id, the spec's name, and whether the spec is one that is to be accepted.
  std::string request_id;
  std::string spec_name;
  bool is_valid = true;
  // WatchJob's.
  int64_t after_sequence = 0;
  // ListJobs's: only those; empty for all.
  std::vector<v1::JobState> states;

  absl::Duration begin;
  absl::Duration end;
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string message;
  // CreateJob's, GetJob's, CancelJob's, PauseJob's and ResumeJob's: one where the code is OK. ListJobs's: all
  // pages that came, in their order; all there are where the code is OK.
  std::vector<SeenJob> jobs;
  // WatchJob's, in the order in which they came.
  std::vector<SeenEvent> events;
};

// Something that was done to the daemon or a worker, for people.
struct Incident {
  absl::Duration time;
  std::string what;
};

struct History {
  // In the order in which they were answered.
  std::vector<Call> calls;
  std::vector<Incident> incidents;
};

// What an answer says of what a call did.
enum class Outcome {
  kDone,
  // Nothing: an error that follows from the request and the job.
  kRefused,
  // It happened once or not at all: no answer, or none in time.
  kUnknown,
  // An error that the API does not have for such a call.
  kUnexpected,
};
Outcome OutcomeOf(const Call& call);

// One line.
std::string Describe(const Call& call);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_HISTORY_H_
