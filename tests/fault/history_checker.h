#ifndef TANDEM_TESTS_FAULT_HISTORY_CHECKER_H_
#define TANDEM_TESTS_FAULT_HISTORY_CHECKER_H_

#include <string>
#include <vector>

#include "tests/fault/history.h"

namespace tandem::testing {

// The promises of the API that a history of calls is held against. They hold whatever is killed meanwhile.
//
//  1. Requests. A job that CreateJob answered for is there until somebody deletes it. All answers to one
//     request id, as long as its job is not deleted, name one job; another spec under that id is refused, a
//     wrong spec makes nothing, and there is no job that nobody asked for. A call that failed for want of an
//     answer happened once or not at all.
//  2. States. A job's log begins with its acceptance and moves along the table of MayMove alone, each change
//     from where the one before led. Nothing follows SUCCEEDED and CANCELLED; only a ResumeJob follows
//     FAILED. Reports come while there is a worker to make them. It is paused and let go on at most as often
//     as somebody asked for it.
//  3. Freshness. What a call shows of a job is no older than what any call showed that had been answered
//     before this one was made, across clients and restarts of the daemon. Each answer agrees with the log:
//     its state is the one that the log has at its last_sequence.
//  4. Cancelling. An answer to CancelJob shows the job CANCELLING or CANCELLED, and it is CANCELLED in the
//     end. Likewise those to PauseJob (PAUSING, PAUSED) and ResumeJob (QUEUED or beyond).
//  5. Refusals. FAILED_PRECONDITION comes only of a job that was, at some moment of the call, in a state that
//     calls for it; NOT_FOUND only of one that was deleted, and then from all later calls.
//  6. Events. A watcher gets those after the number that it named, each once, in order, without a gap, and
//     the same as any other watcher; the stream ends with OK right after an end that is the log's last event.
//  7. Lists. All pages together show each job once: each that was known before the list was begun and that
//     nobody asked to delete before it was done, and none that was gone before. With states given, only jobs
//     in these.
struct Violation {
  // Which of them: "1. Requests".
  std::string promise;
  // What is against it.
  std::string what;
  // The job that it is about; empty where none is.
  std::string job;
  // Numbers of the calls that show it.
  std::vector<int> calls;
};

// All violations that the history shows. Calls must be numbered by their places. `is_settled`: before the
// history's end all jobs had come to their ends and were watched from their first events to their last.
std::vector<Violation> CheckHistory(const History& history, bool is_settled);

// A violation, with what the history has of its job, in the order of time, for people.
std::string Explain(const History& history, const Violation& violation);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_HISTORY_CHECKER_H_
