#include "tests/fault/history_checker.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/fault/history_job_checker.h"

namespace tandem::testing {
namespace {

constexpr char kRequests[] = "1. Requests";
constexpr char kRefusals[] = "5. Refusals";
constexpr char kLists[] = "7. Lists";

// The largest number of lines that Explain prints.
constexpr size_t kMostLines = 120;

class Checker {
 public:
  explicit Checker(const History& history) : history_(history) {
    for (const Call& call : history.calls) {
      if (!call.job.empty()) JobOf(call.job).AddCall(call);
      for (const SeenJob& seen : call.jobs) JobOf(seen.job).AddSeen(seen, call);
      if (call.kind == CallKind::kCreate) creates_[call.spec_name].push_back(&call);
    }
  }

  std::vector<Violation> Check(bool is_settled) {
    for (auto& [name, job] : jobs_) {
      std::vector<Violation> found = job.Check(is_settled);
      std::move(found.begin(), found.end(), std::back_inserter(violations_));
    }
    for (const auto& [name, job] : jobs_) CheckOrigin(job);
    for (const auto& [spec_name, calls] : creates_) CheckOneJob(spec_name);
    for (const Call& call : history_.calls) {
      if (OutcomeOf(call) == Outcome::kUnexpected) {
        Fault(kRefusals,
              absl::StrCat(CallKindName(call.kind), " gave code ", static_cast<int>(call.code), ": ",
                           call.message),
              call.job, {call.number});
      }
      if (call.kind == CallKind::kCreate) CheckCreate(call);
      if (call.kind == CallKind::kList) CheckList(call);
    }
    return std::move(violations_);
  }

 private:
  JobChecker& JobOf(const std::string& name) { return jobs_.try_emplace(name, name).first->second; }

  // A job is of one spec, which somebody had asked for and was not refused.
  void CheckOrigin(const JobChecker& job) {
    if (job.spec_names().size() != 1) {
      Fault(kRequests, absl::StrCat("it was shown with ", job.spec_names().size(), " specs"), job.job(),
            {job.first_call()});
      return;
    }
    const auto creates = creates_.find(*job.spec_names().begin());
    const bool is_asked_for =
        creates != creates_.end() &&
        std::any_of(creates->second.begin(), creates->second.end(), [&](const Call* call) {
          return OutcomeOf(*call) != Outcome::kRefused && call->begin < job.first_known();
        });
    if (!is_asked_for) Fault(kRequests, "nobody had asked for it", job.job(), {job.first_call()});
  }

  // A spec is a request, and a request is a job. Another job is allowed only after a delete request.
  void CheckOneJob(const std::string& spec_name) {
    std::vector<const JobChecker*> made;
    for (const auto& [name, job] : jobs_) {
      if (job.spec_names().count(spec_name) > 0) made.push_back(&job);
    }
    std::sort(made.begin(), made.end(), [](const JobChecker* left, const JobChecker* right) {
      return left->first_known() < right->first_known();
    });
    for (size_t i = 1; i < made.size(); ++i) {
      if (made[i - 1]->delete_begin() < made[i]->first_known()) continue;
      Fault(kRequests,
            absl::StrCat("the request for ", spec_name, " made it, and ", made[i - 1]->job(), " before"),
            made[i]->job(), {made[i - 1]->first_call(), made[i]->first_call()});
    }
  }

  void CheckCreate(const Call& call) {
    if (call.code == grpc::StatusCode::OK && !call.is_valid) {
      Fault(kRequests, "a wrong spec was accepted", call.jobs.front().job, {call.number});
    }
    if (call.code == grpc::StatusCode::OK && call.jobs.front().spec_name != call.spec_name) {
      Fault(kRequests, "the answer is another request's job", call.jobs.front().job, {call.number});
    }
    if (call.code == grpc::StatusCode::INVALID_ARGUMENT && call.is_valid) {
      Fault(kRequests, absl::StrCat("a right spec was refused: ", call.message), "", {call.number});
    }
    if (call.code == grpc::StatusCode::ALREADY_EXISTS &&
        std::none_of(history_.calls.begin(), history_.calls.end(), [&](const Call& other) {
          return other.kind == CallKind::kCreate && other.request_id == call.request_id &&
                 other.spec_name != call.spec_name && other.begin < call.end;
        })) {
      Fault(kRequests, "no other spec had been sent under its request id", "", {call.number});
    }
    if (call.code == grpc::StatusCode::OK) CheckReuse(call);
  }

  // A request id of an existing job must not create a job with another spec.
  void CheckReuse(const Call& call) {
    for (const Call& other : history_.calls) {
      if (other.kind != CallKind::kCreate || other.request_id != call.request_id ||
          other.spec_name == call.spec_name || other.code != grpc::StatusCode::OK ||
          other.end >= call.begin) {
        continue;
      }
      if (JobOf(other.jobs.front().job).delete_begin() < call.end) continue;
      Fault(kRequests, "its request id was another job's", call.jobs.front().job,
            {other.number, call.number});
    }
  }

  void CheckList(const Call& call) {
    std::set<std::string> listed;
    for (const SeenJob& seen : call.jobs) {
      if (!listed.insert(seen.job).second) {
        Fault(kLists, "a list shows it twice", seen.job, {call.number});
      }
      if (!call.states.empty() &&
          std::find(call.states.begin(), call.states.end(), seen.state) == call.states.end()) {
        Fault(kLists, "a list shows it in a state that was not asked for", seen.job, {call.number});
      }
    }
    // A job whose state changes between two pages may be missing.
    if (call.code != grpc::StatusCode::OK || !call.states.empty()) return;
    for (const auto& [name, job] : jobs_) {
      if (job.first_known() >= call.begin || job.delete_begin() < call.end || listed.count(name) > 0)
        continue;
      Fault(kLists, "a list does not show it", name, {job.first_call(), call.number});
    }
  }

  void Fault(const char* promise, std::string what, std::string job, std::vector<int> calls) {
    violations_.push_back({promise, std::move(what), std::move(job), std::move(calls)});
  }

  const History& history_;
  std::map<std::string, JobChecker> jobs_;
  // By the spec's name.
  std::map<std::string, std::vector<const Call*>> creates_;
  std::vector<Violation> violations_;
};

}  // namespace

std::vector<Violation> CheckHistory(const History& history, bool is_settled) {
  return Checker(history).Check(is_settled);
}

std::string Explain(const History& history, const Violation& violation) {
  // By time, with a mark on the calls of the violation.
  std::multimap<absl::Duration, std::string> lines;
  std::set<std::string> spec_names;
  for (const Call& call : history.calls) {
    for (const SeenJob& seen : call.jobs) {
      if (seen.job == violation.job) spec_names.insert(seen.spec_name);
    }
  }
  for (const Call& call : history.calls) {
    const bool shows = std::count(violation.calls.begin(), violation.calls.end(), call.number) > 0;
    const bool is_of_job =
        !violation.job.empty() && (call.job == violation.job || spec_names.count(call.spec_name) > 0);
    if (shows || is_of_job) lines.emplace(call.begin, absl::StrCat(shows ? "* " : "  ", Describe(call)));
    if (call.kind != CallKind::kList) continue;
    for (const SeenJob& seen : call.jobs) {
      if (seen.job != violation.job) continue;
      lines.emplace(seen.begin, absl::StrFormat("    a page until %.6f of list #%d shows %s at event %d",
                                                absl::ToDoubleSeconds(seen.end), call.number,
                                                v1::JobState_Name(seen.state), seen.sequence));
    }
  }
  for (const Incident& incident : history.incidents) {
    lines.emplace(incident.time,
                  absl::StrFormat("  %9.6f  -- %s", absl::ToDoubleSeconds(incident.time), incident.what));
  }
  std::string text = absl::StrCat(violation.promise, ": ", violation.job, ": ", violation.what, "\n");
  size_t printed = 0;
  for (const auto& [time, line] : lines) {
    // Prints the calls of the violation even beyond the limit.
    if (++printed <= kMostLines || line.front() == '*') absl::StrAppend(&text, line, "\n");
  }
  if (printed > kMostLines) absl::StrAppend(&text, "  ... ", printed, " lines in all\n");
  return text;
}

}  // namespace tandem::testing
