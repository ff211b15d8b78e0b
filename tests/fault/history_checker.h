#ifndef TANDEM_TESTS_FAULT_HISTORY_CHECKER_H_
#define TANDEM_TESTS_FAULT_HISTORY_CHECKER_H_

#include <string>
#include <vector>

#include "tests/fault/history.h"

namespace tandem::testing {

// A violation of a promise of the API in a history of calls. The promises hold whatever process is killed
// meanwhile.
//
//  1. Requests. A job in an answer of CreateJob exists until a client deletes it. All answers to a request id
//     name the same job, as long as the job is not deleted. Another spec with this id is refused. A wrong
//     spec creates nothing. Every job has a request. A call without an answer had one effect or none.
//  2. States. A job's log begins with its acceptance. Each change is allowed by MayMove and starts from the
//     state of the last change. Nothing follows SUCCEEDED and CANCELLED, and only a ResumeJob follows FAILED.
//     Reports appear only while the job has a worker. A job is paused and resumed at most as often as clients
//     asked for.
//  3. Freshness. A call shows a job at least as new as every answer that arrived before the call was made,
//     across clients and restarts of the daemon. Each answer agrees with the log: its state is the log's
//     state at its last_sequence.
//  4. Cancelling. An answer to CancelJob shows the job CANCELLING or CANCELLED, and the job is CANCELLED in
//     the end. The same holds for PauseJob (PAUSING, PAUSED) and ResumeJob (QUEUED or later).
//  5. Refusals. FAILED_PRECONDITION appears only if the job was in a state for this error at some moment of
//     the call. NOT_FOUND appears only for deleted jobs, and then in all later calls.
//  6. Events. A watcher receives the events after its sequence number, each once, in order, without a gap,
//     and the same events as any other watcher. The stream ends with OK directly after a terminal event that
//     is the last event of the log.
//  7. Lists. All pages together show each job once. They show every job that was known before the list's
//     start and that no client asked to delete before its end. They show no job that was deleted before. With
//     states given, they show only jobs in these states.
struct Violation {
  // The promise: "1. Requests".
  std::string promise;
  // The violation.
  std::string what;
  // The job. Empty if the violation has none.
  std::string job;
  // Numbers of the calls that show the violation.
  std::vector<int> calls;
};

// Returns all violations in the history. The numbers of calls must be their indices. `is_settled`: before the
// end of the history, all jobs had ended and were watched from the first to the last event.
std::vector<Violation> CheckHistory(const History& history, bool is_settled);

// Returns a violation as text, with the history of its job in the order of time.
std::string Explain(const History& history, const Violation& violation);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_HISTORY_CHECKER_H_
