#include "server/sweeps/expansion.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/spelling.h"
#include "engine/training/job_name.h"
#include "proto/fields/field_place.h"
#include "proto/fields/field_value.h"
#include "server/sweeps/random_values.h"

namespace tandem {
namespace {

constexpr int kMostPruningEpochs = 1'000'000;

using google::protobuf::Value;

// If a field got two values, one would be lost.
bool Overlap(absl::string_view a, absl::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return a == b || (absl::StartsWith(b, a) && (b[a.size()] == '.' || b[a.size()] == '['));
}

// Checks the paths of a search's fields, and that no two overlap.
class PathCheck {
 public:
  PathCheck(const v1::JobSpec& base, FieldViolations* violations) : base_(base), violations_(violations) {}

  // `where` is the field's own path in the request.
  void Check(const std::string& path, const std::string& where) {
    if (path.empty()) {
      violations_->Add(where, "is required: a path such as training.optimizer.adam.learning_rate");
      return;
    }
    v1::JobSpec spec = base_;
    if (const absl::Status found = FindField(path, &SpellingHint, &spec).status(); !found.ok()) {
      violations_->Add(where, found.message());
      return;
    }
    for (const std::string& other : paths_) {
      if (!Overlap(path, other)) continue;
      violations_->Add(where, path == other ? absl::StrCat("is \"", path, "\", which is already given")
                                            : absl::StrCat("is \"", path, "\", but \"", other,
                                                           "\" is already given: one is part of the other"));
      return;
    }
    paths_.push_back(path);
  }

 private:
  const v1::JobSpec& base_;
  FieldViolations* const violations_;
  std::vector<std::string> paths_;
};

void CheckGrid(const v1::Sweep& sweep, FieldViolations* violations) {
  PathCheck paths(sweep.base(), violations);
  for (int i = 0; i < sweep.grid_size(); ++i) {
    const v1::SweepGridField& field = sweep.grid(i);
    const std::string where = absl::StrCat("sweep.grid[", i, "]");
    paths.Check(field.field(), where + ".field");
    if (field.values().empty()) violations->Add(where + ".values", "is required: one value, or more");
    std::set<std::string> seen;
    for (int k = 0; k < field.values_size(); ++k) {
      const std::string element = absl::StrCat(where, ".values[", k, "]");
      const absl::StatusOr<std::string> text = ToJsonText(field.values(k));
      if (!text.ok()) {
        violations->Add(element, text.status().message());
      } else if (!seen.insert(*text).second) {
        violations->Add(element, absl::StrCat("is ", text->substr(0, 100), ", which is already given"));
      }
    }
  }
}

void CheckRandom(const v1::Sweep& sweep, FieldViolations* violations) {
  const v1::SweepRandom& random = sweep.random();
  if (random.samples() < 1 || random.samples() > kMostSweepJobs) {
    violations->Add("sweep.random.samples",
                    absl::StrCat("is ", random.samples(), "; it must be from 1 to ", kMostSweepJobs));
  }
  if (random.fields().empty()) violations->Add("sweep.random.fields", "is required: one field, or more");
  PathCheck paths(sweep.base(), violations);
  for (int i = 0; i < random.fields_size(); ++i) {
    const std::string where = absl::StrCat("sweep.random.fields[", i, "]");
    paths.Check(random.fields(i).field(), where + ".field");
    violations->AddAll(where, CheckDistribution(random.fields(i)));
  }
}

absl::Status CheckSweep(const v1::Sweep& sweep) {
  FieldViolations violations;
  if (!sweep.has_base()) violations.Add("sweep.base", "is required: the spec that the jobs share");
  if (const std::string why = WhyNoJobName(sweep.display_name()); !why.empty()) {
    violations.Add("sweep.display_name", why);
  }
  const bool is_grid = !sweep.grid().empty();
  if (is_grid == sweep.has_random()) {
    violations.Add(is_grid ? "sweep.random" : "sweep.grid",
                   is_grid ? "is given beside grid; give one of the two"
                           : "is required, unless random is given: the fields and their values");
  }
  const int fields = std::max(sweep.grid_size(), sweep.random().fields_size());
  if (fields > kMostSweepFields) {
    violations.Add(is_grid ? "sweep.grid" : "sweep.random.fields",
                   absl::StrCat("has ", fields, " fields; at most ", kMostSweepFields, " may differ"));
    return violations.ToStatus();
  }
  if (is_grid) CheckGrid(sweep, &violations);
  if (sweep.has_random()) CheckRandom(sweep, &violations);
  if (sweep.max_running() < 0 || sweep.max_running() > kMostSweepJobs) {
    violations.Add("sweep.max_running", absl::StrCat("is ", sweep.max_running(), "; it must be from 1 to ",
                                                     kMostSweepJobs, ", or be 0 for any number"));
  }
  const v1::SweepPruning& pruning = sweep.pruning();
  if (pruning.min_jobs() < 0 || pruning.min_jobs() >= kMostSweepJobs) {
    violations.Add("sweep.pruning.min_jobs",
                   absl::StrCat("is ", pruning.min_jobs(), "; it must be from 1 to ", kMostSweepJobs - 1,
                                ", or be 0 for the default"));
  }
  if (pruning.min_epochs() < 0 || pruning.min_epochs() > kMostPruningEpochs) {
    violations.Add("sweep.pruning.min_epochs",
                   absl::StrCat("is ", pruning.min_epochs(), "; it must be from 1 to ", kMostPruningEpochs,
                                ", or be 0 for the default"));
  }
  const std::string& metric = sweep.base().training().best_model().metric();
  if (!sweep.objective().metric().empty() && !metric.empty() && metric != sweep.objective().metric()) {
    violations.Add("sweep.objective.metric", absl::StrCat("is \"", sweep.objective().metric(),
                                                          "\", and base.training.best_model.metric is \"",
                                                          metric, "\"; give one of them"));
  }
  return violations.ToStatus();
}

void SetObjective(const v1::SweepObjective& objective, v1::Training* training) {
  if (objective.metric().empty() && objective.mode() == v1::PLATEAU_MODE_UNSPECIFIED) return;
  const bool kept = training->has_best_model();
  v1::BestModel* best = training->mutable_best_model();
  if (!kept) best->set_keep_weights(false);
  if (!objective.metric().empty()) best->set_metric(objective.metric());
  if (objective.mode() != v1::PLATEAU_MODE_UNSPECIFIED) best->set_mode(objective.mode());
}

// A value and its place in the request.
struct Assignment {
  const std::string* field;
  Value value;
  std::string where;
};

absl::StatusOr<SweepJob> MakeJob(const v1::Sweep& sweep, std::vector<Assignment> assignments) {
  SweepJob job;
  job.spec = sweep.base();
  SetObjective(sweep.objective(), job.spec.mutable_training());
  for (Assignment& assignment : assignments) {
    const absl::StatusOr<FieldPlace> place = FindField(*assignment.field, &SpellingHint, &job.spec);
    const absl::Status set = place.ok() ? SetFieldValue(*place, assignment.value) : place.status();
    if (!set.ok()) {
      // Only here the error shows if another field made a list shorter than the path's index.
      return FieldError(assignment.where,
                        absl::StrCat(place.ok() ? *assignment.field + ": " : "", set.message()));
    }
    v1::SweepValue& value = job.values.emplace_back();
    value.set_field(*assignment.field);
    *value.mutable_value() = std::move(assignment.value);
  }
  return job;
}

int64_t CountJobs(const v1::Sweep& sweep) {
  if (sweep.has_random()) return sweep.random().samples();
  int64_t count = 1;
  for (const v1::SweepGridField& field : sweep.grid()) {
    count *= field.values_size();
    if (count > kMostSweepJobs) break;
  }
  return count;
}

// Returns an error if no job of the sweep could ever be pruned: one more than min_jobs must exist.
absl::Status CheckPruningCan(const v1::Sweep& sweep, int64_t jobs) {
  const int needed = MinJobsOf(sweep.pruning());
  if (!sweep.has_pruning() || jobs > needed) return absl::OkStatus();
  return FieldError("sweep.pruning.min_jobs",
                    absl::StrCat("is ", needed, sweep.pruning().min_jobs() > 0 ? "" : " by default",
                                 ", and the sweep has only ", jobs, jobs == 1 ? " job" : " jobs",
                                 ", so no job could ever be pruned; ",
                                 jobs > 1 ? absl::StrCat("give a min_jobs from 1 to ", jobs - 1, ", ") : "",
                                 jobs > 1 ? "more jobs, or no pruning" : "give more jobs, or no pruning"));
}

// Returns the assignments of the job with this number.
std::vector<Assignment> AssignmentsOf(const v1::Sweep& sweep, int number) {
  std::vector<Assignment> assignments;
  if (sweep.has_random()) {
    for (int i = 0; i < sweep.random().fields_size(); ++i) {
      const v1::SweepRandomField& field = sweep.random().fields(i);
      assignments.push_back({&field.field(), DrawValue(field, sweep.random().seed(), i, number),
                             absl::StrCat("sweep.random.fields[", i, "]")});
    }
    return assignments;
  }
  assignments.resize(sweep.grid_size());
  for (int i = sweep.grid_size() - 1; i >= 0; --i) {
    const v1::SweepGridField& field = sweep.grid(i);
    const int k = number % field.values_size();
    number /= field.values_size();
    assignments[i] = {&field.field(), field.values(k), absl::StrCat("sweep.grid[", i, "].values[", k, "]")};
  }
  return assignments;
}

}  // namespace

int MinJobsOf(const v1::SweepPruning& pruning) {
  return pruning.min_jobs() > 0 ? pruning.min_jobs() : kDefaultPruningJobs;
}

absl::Status SweepTooLarge() {
  return WithReason(
      absl::ResourceExhaustedError(absl::StrCat("sweep: the specs of its jobs have more than ",
                                                kMostSweepBytes >> 20, " MiB together; make fewer jobs")),
      "SWEEP_TOO_LARGE");
}

absl::StatusOr<SweepExpansion> SweepExpansion::Create(const v1::Sweep* sweep) {
  if (absl::Status status = CheckSweep(*sweep); !status.ok())
    return WithReason(std::move(status), "INVALID_SWEEP");
  const int64_t count = CountJobs(*sweep);
  if (count > kMostSweepJobs) {
    return WithReason(
        absl::ResourceExhaustedError(
            absl::StrCat("sweep.grid: makes more than ", kMostSweepJobs,
                         " jobs, the most that a sweep may have; give fewer values, or draw some by random")),
        "SWEEP_TOO_LARGE");
  }
  if (absl::Status status = CheckPruningCan(*sweep, count); !status.ok())
    return WithReason(std::move(status), "INVALID_SWEEP");
  SweepExpansion expansion(sweep, static_cast<int>(count));
  FieldViolations violations;
  std::set<std::string> at_fault;
  for (int number = 0; number < expansion.jobs_; ++number) {
    const absl::StatusOr<SweepJob> job = MakeJob(*sweep, AssignmentsOf(*sweep, number));
    if (!job.ok()) {
      for (const FieldViolation& violation : GetFieldViolations(job.status())) {
        // The same wrong value may be in many jobs. Report it once.
        if (at_fault.insert(violation.field).second) violations.Add(violation.field, violation.description);
      }
      continue;
    }
    expansion.bytes_ += job->spec.ByteSizeLong();
    for (const v1::SweepValue& value : job->values) expansion.bytes_ += value.ByteSizeLong();
    if (expansion.bytes_ > kMostSweepBytes) return SweepTooLarge();
  }
  if (!violations.empty()) return WithReason(violations.ToStatus(), "INVALID_SWEEP");
  return expansion;
}

SweepJob SweepExpansion::Job(int number) const {
  // Create already made each job, so this succeeds.
  return MakeJob(*sweep_, AssignmentsOf(*sweep_, number)).value();
}

std::string DescribeValues(const std::vector<v1::SweepValue>& values) {
  return absl::StrJoin(values, ", ", [](std::string* out, const v1::SweepValue& value) {
    absl::StrAppend(out, value.field(), "=", ToJsonText(value.value()).value_or("").substr(0, 100));
  });
}

}  // namespace tandem
