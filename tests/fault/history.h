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

// The calls of clients to a daemon, and the answers, with times. Plain data. All times are since the start of
// the history, on a single clock that does not jump.

// The method of a call.
enum class CallKind { kCreate, kGet, kList, kCancel, kPause, kResume, kDelete, kWatch };

// Returns "CreateJob" and so on.
absl::string_view CallKindName(CallKind kind);

// A job in an answer.
struct SeenJob {
  // "jobs/<id>".
  std::string job;
  // JobSpec.name. Requests for different jobs have different names, so the name identifies the request that
  // created the job.
  std::string spec_name;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  // Job.last_sequence.
  int64_t sequence = 0;
  // The times of the request and the answer of the call, or of the list's page.
  absl::Duration begin;
  absl::Duration end;
};

// An event that a watcher received.
struct SeenEvent {
  v1::JobEvent event;
  absl::Duration time;
};

// A call and its answer.
struct Call {
  // The index in History::calls.
  int number = 0;
  int client = 0;
  CallKind kind = CallKind::kGet;
  // The job. Empty for CreateJob and ListJobs.
  std::string job;
  // For CreateJob: the request id, the spec's name, and whether the daemon should accept the spec.
  std::string request_id;
  std::string spec_name;
  bool is_valid = true;
  // For WatchJob.
  int64_t after_sequence = 0;
  // For ListJobs: the requested states. Empty: all states.
  std::vector<v1::JobState> states;

  absl::Duration begin;
  absl::Duration end;
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string message;
  // For CreateJob, GetJob, CancelJob, PauseJob and ResumeJob: a single job if the code is OK. For ListJobs:
  // the jobs of all received pages, in order; complete if the code is OK.
  std::vector<SeenJob> jobs;
  // For WatchJob: the events, in the order of their arrival.
  std::vector<SeenEvent> events;
};

// A fault that the test caused in the daemon or a worker.
struct Incident {
  absl::Duration time;
  std::string what;
};

struct History {
  // The calls, in the order of their answers.
  std::vector<Call> calls;
  std::vector<Incident> incidents;
};

// The effect of a call, by its answer.
enum class Outcome {
  kDone,
  // No effect: an error that follows from the request and the job.
  kRefused,
  // One effect or none: there was no answer, or no answer in time.
  kUnknown,
  // An error that the API does not have for this call.
  kUnexpected,
};
Outcome OutcomeOf(const Call& call);

// Returns the call as a line of text.
std::string Describe(const Call& call);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_HISTORY_H_
