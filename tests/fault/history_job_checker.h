#ifndef TANDEM_TESTS_FAULT_HISTORY_JOB_CHECKER_H_
#define TANDEM_TESTS_FAULT_HISTORY_JOB_CHECKER_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/fault/history.h"
#include "tests/fault/history_checker.h"
#include "tests/fault/history_model.h"

namespace tandem::testing {

// Checks promises 2 to 6 of history_checker.h for a job. The calls must outlive the checker.
class JobChecker {
 public:
  explicit JobChecker(std::string job) : job_(std::move(job)) {}

  // Adds a call on this job.
  void AddCall(const Call& call);
  // Adds the job as an answer showed it. The call may be on another job.
  void AddSeen(const SeenJob& seen, const Call& call);

  // Call this once, after all additions.
  std::vector<Violation> Check(bool is_settled);

  // Call the functions below after Check.
  const std::string& job() const { return job_; }
  const std::set<std::string>& spec_names() const { return spec_names_; }
  // Returns the first time at which a client knew of the job, or InfiniteFuture.
  absl::Duration first_known() const { return first_known_; }
  int first_call() const { return first_call_; }
  // Returns the time of the first request to delete the job that was not refused, or InfiniteFuture.
  absl::Duration delete_begin() const { return delete_begin_; }

 private:
  // An answer's information about the job's newest event.
  struct Shown {
    int64_t sequence = 0;
    // UNSPECIFIED if the answer does not have the state.
    v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
    absl::Duration begin;
    absl::Duration end;
    const Call* call = nullptr;
  };

  void AddEvents(const Call& call);
  void AddShown(Shown shown);
  void Know(absl::Duration time, const Call& call);

  void CheckLog();
  void CheckCounts();
  void CheckShown(const Shown& shown);
  void CheckCall(const Call& call);
  void CheckStream(const Call& call);
  void CheckRefusal(const Call& call);
  // Returns whether the job may have been in one of the states at some moment of the call.
  bool MayHaveBeen(const Call& call, const std::set<v1::JobState>& states) const;
  void Fault(const char* promise, std::string what, std::vector<int> calls = {});

  std::string job_;
  bool is_settled_ = false;
  std::set<std::string> spec_names_;
  std::vector<const Call*> calls_;
  std::vector<Shown> shown_;
  JobLog log_;
  JobTimeline timeline_;
  absl::Duration first_known_ = absl::InfiniteDuration();
  int first_call_ = -1;
  absl::Duration delete_begin_ = absl::InfiniteDuration();
  std::vector<Violation> violations_;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_HISTORY_JOB_CHECKER_H_
