#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "server/admission/remote_data.h"
#include "server/rpc/handlers.h"
#include "server/rpc/job_request.h"
#include "server/rpc/local_data.h"
#include "server/rpc/post_for_user.h"
#include "server/rpc/quota_checks.h"
#include "server/sweeps/expansion.h"
#include "server/sweeps/results.h"

namespace tandem::rpc {
namespace {

// After so many jobs that are wrong the others are not looked at.
constexpr int kMostWrongJobs = 5;

// A sweep that is being made; shared by the steps of that.
struct Making {
  const RpcContext* context;
  Caller caller;
  const v1::CreateSweepRequest* request;
  Reply<v1::Sweep> reply;
  std::vector<SweepJob> jobs;
  // What jobs name is there until they are.
  std::vector<DatasetRegistry::Hold> holds;
  // What stands in the place of each data set, by that set's bytes.
  std::map<std::string, v1::DatasetSpec> local;
  // The first job whose data was not looked at.
  size_t next = 0;
};

// An error of one job as the sweep's: fields of its spec are those of the base.
absl::Status OfSweep(const absl::Status& status, const SweepJob& job) {
  const std::string with = DescribeValues(job.values);
  FieldViolations violations;
  for (const FieldViolation& violation : GetFieldViolations(status)) {
    absl::string_view field = violation.field;
    const bool in_spec = absl::ConsumePrefix(&field, "spec.") || absl::ConsumePrefix(&field, "spec");
    violations.Add(in_spec ? absl::StrCat("sweep.base", field.empty() ? "" : ".", field) : violation.field,
                   absl::StrCat("with ", with, ": ", violation.description));
  }
  absl::Status mine =
      violations.empty()
          ? absl::Status(status.code(), absl::StrCat("sweep: with ", with, ": ", status.message()))
          : violations.ToStatus();
  return WithReasonDetails(WithReason(std::move(mine), GetReason(status)), GetReasonDetails(status));
}

absl::Status CheckRequest(const v1::CreateSweepRequest& request) {
  if (!request.has_sweep()) return FieldError("sweep", "is required: the base, and what varies");
  TANDEM_RETURN_IF_ERROR(CheckSpecSize(request.sweep(), "sweep"));
  TANDEM_RETURN_IF_ERROR(CheckKnownFields(request));
  return CheckRequestId(request.request_id());
}

// By which measure the jobs are compared, as their specs have it with defaults filled in.
absl::StatusOr<v1::SweepObjective> ObjectiveOf(const std::vector<JobMachine::NewJob>& jobs,
                                               const std::vector<SweepJob>& expanded) {
  const v1::BestModel& first = jobs.front().spec.training().best_model();
  for (size_t i = 1; i < jobs.size(); ++i) {
    const v1::BestModel& best = jobs[i].spec.training().best_model();
    if (best.metric() == first.metric() && best.mode() == first.mode()) continue;
    return WithReason(FieldError("sweep.objective",
                                 absl::StrCat("is \"", first.metric(), "\" for the first of the jobs, and \"",
                                              best.metric(), "\" with ", DescribeValues(expanded[i].values),
                                              ": they cannot be compared; give an objective")),
                      "INVALID_SWEEP");
  }
  v1::SweepObjective objective;
  objective.set_metric(first.metric());
  objective.set_mode(first.mode());
  return objective;
}

// All of the jobs, checked whole; the first errors of several where some are wrong.
absl::StatusOr<std::vector<JobMachine::NewJob>> AdmitAll(const Making& making) {
  std::vector<JobMachine::NewJob> jobs;
  FieldViolations violations;
  std::string reason;
  // What is wrong for itself stands in every job: it is said once.
  std::map<std::pair<std::string, std::string>, int> seen;
  int wrong = 0;
  for (const SweepJob& job : making.jobs) {
    TANDEM_RETURN_IF_ERROR(making.context->lifecycle->CheckServing());
    if (!making.reply.is_wanted()) return absl::CancelledError("nobody waits for the answer");
    absl::StatusOr<JobMachine::NewJob> admitted = AdmitJob(*making.context, making.caller, job.spec);
    if (admitted.ok()) {
      admitted->sweep_values = job.values;
      jobs.push_back(*std::move(admitted));
      continue;
    }
    const std::vector<FieldViolation> found = GetFieldViolations(admitted.status());
    if (found.empty()) return OfSweep(admitted.status(), job);
    reason = GetReason(admitted.status());
    const std::vector<FieldViolation> mine = GetFieldViolations(OfSweep(admitted.status(), job));
    for (size_t i = 0; i < found.size(); ++i) {
      if (seen[{found[i].field, found[i].description}]++ == 0) {
        violations.Add(mine[i].field, mine[i].description);
      }
    }
    if (++wrong == kMostWrongJobs) break;
  }
  if (!violations.empty()) return WithReason(violations.ToStatus(), reason);
  return jobs;
}

// With all data at hand.
void Finish(const std::shared_ptr<Making>& making) {
  absl::StatusOr<std::vector<JobMachine::NewJob>> jobs = AdmitAll(*making);
  if (!jobs.ok()) {
    making->reply(jobs.status());
    return;
  }
  const absl::StatusOr<v1::SweepObjective> objective = ObjectiveOf(*jobs, making->jobs);
  if (!objective.ok()) {
    making->reply(objective.status());
    return;
  }
  const v1::Sweep& wanted = making->request->sweep();
  JobMachine::NewSweep sweep;
  sweep.sweep.set_display_name(wanted.display_name().empty() ? wanted.base().name() : wanted.display_name());
  *sweep.sweep.mutable_base() = wanted.base();
  *sweep.sweep.mutable_grid() = wanted.grid();
  if (wanted.has_random()) *sweep.sweep.mutable_random() = wanted.random();
  sweep.sweep.set_max_running(wanted.max_running());
  *sweep.sweep.mutable_objective() = *objective;
  if (making->request->validate_only()) {
    sweep.sweep.set_user(making->caller.user);
    sweep.sweep.set_jobs(static_cast<int>(jobs->size()));
    for (size_t i = 0; i < jobs->size(); ++i) {
      v1::SweepResult* result = sweep.sweep.add_results();
      result->set_index(static_cast<int>(i));
      result->mutable_values()->Add((*jobs)[i].sweep_values.begin(), (*jobs)[i].sweep_values.end());
    }
    making->reply(std::move(sweep.sweep));
    return;
  }
  // Admission may have taken a while.
  if (absl::Status status = making->context->lifecycle->CheckAcceptsJobs(); !status.ok()) {
    making->reply(std::move(status));
    return;
  }
  if (absl::Status status = CheckQueueLength(*making->context, static_cast<int64_t>(jobs->size()));
      !status.ok()) {
    making->reply(std::move(status));
    return;
  }
  sweep.submitted = wanted;
  sweep.request_id = making->request->request_id();
  sweep.jobs = *std::move(jobs);
  making->context->jobs->CreateSweep(std::move(sweep), [making](absl::StatusOr<StoredSweep> made) {
    if (made.ok()) {
      making->reply(DescribeSweep(*made));
    } else {
      making->reply(made.status());
    }
  });
}

// Brings the data of the jobs near, from `making->next` on: each data set once.
void BringData(const std::shared_ptr<Making>& making) {
  for (; making->next < making->jobs.size(); ++making->next) {
    SweepJob& job = making->jobs[making->next];
    if (!job.spec.has_dataset()) continue;
    const std::string key = job.spec.dataset().SerializeAsString();
    if (const auto known = making->local.find(key); known != making->local.end()) {
      *job.spec.mutable_dataset() = known->second;
      continue;
    }
    if (NamesUrls(job.spec.dataset())) {
      if (absl::Status status = CheckWithoutData(*making->context, job.spec); !status.ok()) {
        making->reply(OfSweep(status, job));
        return;
      }
    }
    making->holds.push_back(making->context->registry->HoldFor(job.spec.dataset().name()));
    WithLocalData(*making->context, making->caller.user, job.spec.dataset(), "spec.dataset", kFetchWait,
                  [making, key](absl::StatusOr<v1::DatasetSpec> dataset) {
                    if (!dataset.ok()) {
                      making->reply(OfSweep(dataset.status(), making->jobs[making->next]));
                      return;
                    }
                    making->local.emplace(key, *std::move(dataset));
                    // Never from within itself: there may be a thousand.
                    making->context->user_pool->Post(making->caller.user, [making] { BringData(making); });
                  });
    return;
  }
  Finish(making);
}

// The most memory that the jobs take until they are made.
int64_t BytesOf(const RpcContext& context, const std::vector<SweepJob>& jobs) {
  size_t bytes = 0;
  // By their hashes: those that are alike stand in Making::local once.
  std::set<size_t> datasets;
  for (const SweepJob& job : jobs) {
    bytes += BytesOf(job);
    if (!job.spec.has_dataset()) continue;
    const v1::DatasetSpec& dataset = job.spec.dataset();
    // They get pinned URLs.
    const size_t pins = PinBytes(dataset);
    bytes += pins;
    const std::string key = dataset.SerializeAsString();
    if (datasets.insert(std::hash<std::string>()(key)).second) {
      bytes += key.size() + dataset.SpaceUsedLong() + pins;
      // A name may be that of a large one.
      bytes += static_cast<size_t>(LocalDataBytes(context, dataset));
    }
  }
  return static_cast<int64_t>(bytes);
}

void Create(std::shared_ptr<Making> making) {
  const v1::CreateSweepRequest& request = *making->request;
  if (!request.request_id().empty() && !request.validate_only()) {
    // Before anything may refuse it: what the first request found may be gone since.
    absl::StatusOr<std::optional<StoredSweep>> repeated =
        making->context->jobs->FindRepeatedSweep(making->caller.user, request.request_id(), request.sweep());
    if (!repeated.ok()) {
      making->reply(repeated.status());
      return;
    }
    if (repeated->has_value()) {
      making->reply(DescribeSweep(**repeated));
      return;
    }
  }
  if (absl::Status status = making->context->lifecycle->CheckAcceptsJobs(); !status.ok()) {
    making->reply(std::move(status));
    return;
  }
  absl::StatusOr<std::vector<SweepJob>> jobs = ExpandSweep(request.sweep());
  if (!jobs.ok()) {
    making->reply(jobs.status());
    return;
  }
  // All of them wait from the beginning, whatever its max_running. Before data is fetched for nothing.
  if (absl::Status status = CheckQueueLength(*making->context, static_cast<int64_t>(jobs->size()));
      !status.ok()) {
    making->reply(std::move(status));
    return;
  }
  // A sweep of a few lines may be very many large jobs, and data be waited for.
  if (!KeepMore(*making->context, making->caller.user, BytesOf(*making->context, *jobs), making->reply))
    return;
  making->jobs = *std::move(jobs);
  BringData(making);
}

}  // namespace

void CreateSweep(const RpcContext& context, const Caller& caller, const v1::CreateSweepRequest& request,
                 Reply<v1::Sweep> reply) {
  if (absl::Status status = CheckRequest(request); !status.ok()) {
    reply(std::move(status));
    return;
  }
  auto making = std::make_shared<Making>();
  making->context = &context;
  making->caller = caller;
  making->request = &request;
  // It reads the database, and admission reads data sets.
  PostForUser(context, caller.user, request, std::move(reply), [making](Reply<v1::Sweep> reply) {
    making->reply = std::move(reply);
    Create(making);
  });
}

}  // namespace tandem::rpc
