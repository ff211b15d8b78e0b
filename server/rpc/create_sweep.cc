#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/training/watched_measure.h"
#include "server/admission/remote_data.h"
#include "server/jobs/uploaded_weights.h"
#include "server/rpc/handlers.h"
#include "server/rpc/job_requests.h"
#include "server/rpc/post_for.h"
#include "server/rpc/reserved_weights.h"
#include "server/sweeps/expansion.h"
#include "server/sweeps/results.h"

namespace tandem::rpc {
namespace {

// Returns true if the jobs may have different data sets or initial weights.
bool VariesData(const v1::Sweep& sweep) {
  const auto is_data = [](const std::string& field) {
    return absl::StartsWith(field, "dataset") || absl::StartsWith(field, "initial_weights");
  };
  return std::any_of(sweep.grid().begin(), sweep.grid().end(),
                     [&](const v1::SweepGridField& field) { return is_data(field.field()); }) ||
         std::any_of(sweep.random().fields().begin(), sweep.random().fields().end(),
                     [&](const v1::SweepRandomField& field) { return is_data(field.field()); });
}

// The data set of a job and the file of its initial weights.
struct JobData {
  v1::DatasetSpec dataset;
  std::string weights;
};

bool HasData(const v1::JobSpec& spec) { return spec.has_dataset() || spec.initial_weights().has_file(); }

// Returns the same text for jobs with the same data.
std::string DataKey(const v1::JobSpec& spec) {
  return absl::StrCat(spec.initial_weights().file(), std::string(1, '\0'),
                      spec.dataset().SerializeAsString());
}

// After this many invalid jobs, the remaining jobs are not checked.
constexpr int kMostWrongJobs = 5;

// The state of a sweep in creation, shared by its steps.
struct Making {
  JobMachine* jobs;
  const Lifecycle* lifecycle;
  const Quotas* quotas;
  const JobRequests* requests;
  Uploads* uploads;
  FairPool* user_pool;
  Caller caller;
  const v1::CreateSweepRequest* request;
  Reply<v1::Sweep> reply;
  std::optional<SweepExpansion> expansion;
  // Keeps the jobs' data sets until the jobs exist.
  std::vector<DatasetRegistry::Hold> holds;
  // The replacement of each job's data, by DataKey.
  std::map<std::string, JobData> local;
  // The first job whose data was not fetched yet.
  int next = 0;
};

// Turns a job's error into the sweep's: fields of its spec become fields of the base.
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
  if (!request.has_sweep()) return FieldError("sweep", "is required; give the base and the fields that vary");
  TANDEM_RETURN_IF_ERROR(CheckSpecSize(request.sweep(), "sweep"));
  return CheckRequestId(request.request_id());
}

// Checks that all jobs of a sweep have the same objective.
class Objective {
 public:
  // Adds a job's objective. The spec must have its defaults. INVALID_ARGUMENT: it differs from the earlier
  // jobs' objective.
  absl::Status Add(const v1::JobSpec& spec, const SweepJob& job) {
    const WatchedMeasure best = BestMeasure(spec.training());
    if (!first_.has_value()) first_ = best;
    if (best.ToString() == first_->ToString()) return absl::OkStatus();
    return WithReason(FieldError("sweep.objective",
                                 absl::StrCat("is \"", first_->name, "\" for the first job, but \"",
                                              best.name, "\" for the job with ", DescribeValues(job.values),
                                              ", so the jobs cannot be compared; give an objective")),
                      "INVALID_SWEEP");
  }

  // Returns the objective of the added jobs; at least one job must have been added.
  v1::SweepObjective Get() const {
    v1::SweepObjective objective;
    objective.set_metric(first_->name);
    objective.set_mode(first_->downwards ? v1::PLATEAU_MODE_MIN : v1::PLATEAU_MODE_MAX);
    return objective;
  }

 private:
  std::optional<WatchedMeasure> first_;
};

struct AdmittedSweep {
  std::vector<JobMachine::NewSweep::Part> jobs;
  // Each job's uploaded weights, or nullopt.
  std::vector<std::optional<UploadedFile>> weights;
  Objective objective;
};

// Checks all jobs completely, one after another. Returns the first errors of several jobs if some are
// invalid.
absl::StatusOr<AdmittedSweep> AdmitAll(const Making& making) {
  AdmittedSweep sweep;
  FieldViolations violations;
  std::string reason;
  absl::Status incomparable;
  size_t bytes = 0;
  // An error that does not depend on the varied fields is the same in every job. Report it once.
  std::map<std::pair<std::string, std::string>, int> seen;
  int wrong = 0;
  for (int i = 0; i < making.expansion->jobs() && wrong < kMostWrongJobs; ++i) {
    TANDEM_RETURN_IF_ERROR(making.lifecycle->CheckServing());
    if (!making.reply.is_wanted()) return absl::CancelledError("the client cancelled the call");
    SweepJob job = making.expansion->Job(i);
    if (const auto local = making.local.find(DataKey(job.spec)); local != making.local.end()) {
      if (job.spec.has_dataset()) *job.spec.mutable_dataset() = local->second.dataset;
      if (job.spec.initial_weights().has_file()) {
        job.spec.mutable_initial_weights()->set_file(local->second.weights);
      }
    }
    absl::StatusOr<JobMachine::NewJob> admitted = making.requests->Admit(making.caller, job.spec);
    if (admitted.ok()) {
      incomparable.Update(sweep.objective.Add(admitted->spec, job));
      JobMachine::NewSweep::Part& part = sweep.jobs.emplace_back();
      part.spec = admitted->spec.SerializeAsString();
      part.planned_memory_bytes = admitted->planned_memory_bytes;
      part.planned_operations = admitted->planned_operations;
      part.values = std::move(job.values);
      sweep.weights.push_back(UploadedWeights(job.spec.initial_weights()));
      bytes += part.spec.size();
      // An expanded template is larger.
      if (bytes > kMostSweepBytes) return SweepTooLarge();
      continue;
    }
    const std::vector<FieldViolation> found = GetFieldViolations(admitted.status());
    if (found.empty()) return OfSweep(admitted.status(), job);
    reason = GetReason(admitted.status());
    const std::vector<FieldViolation> mine = GetFieldViolations(OfSweep(admitted.status(), job));
    for (size_t k = 0; k < found.size(); ++k) {
      if (seen[{found[k].field, found[k].description}]++ == 0) {
        violations.Add(mine[k].field, mine[k].description);
      }
    }
    ++wrong;
  }
  if (!violations.empty()) return WithReason(violations.ToStatus(), reason);
  TANDEM_RETURN_IF_ERROR(incomparable);
  return sweep;
}

// A checked sweep whose jobs get the uploaded files from which they start.
struct Keeping {
  Keeping(std::shared_ptr<Making> making, JobMachine::NewSweep sweep,
          std::vector<std::optional<UploadedFile>> weights)
      : making(std::move(making)), sweep(std::move(sweep)), weights(std::move(weights)) {}

  const std::shared_ptr<Making> making;
  JobMachine::NewSweep sweep;
  const std::vector<std::optional<UploadedFile>> weights;  // Of each job, or nullopt.
  std::vector<std::string> ids;                            // Reserved.
  // The first job without its file.
  size_t next = 0;
};

// Ends the creation. If `made` is not the sweep of the reserved ids, releases them. On the user's pool or on
// the store's writer thread.
void EndKeeping(const std::shared_ptr<Keeping>& keeping, absl::StatusOr<StoredSweep> made) {
  const auto is_used = [&] {
    if (!made.ok()) return false;
    return std::any_of(made->jobs.begin(), made->jobs.end(), [&](const StoredJob& row) {
      return row.job.folder() == keeping->making->jobs->FolderOf(keeping->ids[0]);
    });
  };
  auto answer = made.ok() ? absl::StatusOr<v1::Sweep>(DescribeSweep(*made)) : made.status();
  if (keeping->ids.empty() || is_used()) return keeping->making->reply(std::move(answer));
  keeping->making->user_pool->Post(keeping->making->caller.user,
                                   [keeping, answer = std::move(answer)]() mutable {
                                     for (const std::string& id : keeping->ids)
                                       ReleaseWithWeights(keeping->making->jobs, id);
                                     keeping->making->reply(std::move(answer));
                                   });
}

// Keeps the uploaded files of the jobs from `keeping->next` on, then creates the sweep.
void KeepWeights(const std::shared_ptr<Keeping>& keeping) {
  const std::shared_ptr<Making>& making = keeping->making;
  for (; keeping->next < keeping->weights.size(); ++keeping->next) {
    const std::optional<UploadedFile>& uploaded = keeping->weights[keeping->next];
    if (!uploaded.has_value()) continue;
    JobMachine::NewJob reserving;
    reserving.spec.set_name(keeping->sweep.sweep.base().name());
    reserving.user = keeping->sweep.user;
    reserving.max_queued_jobs = keeping->sweep.max_queued_jobs;
    ReserveWithWeights(
        making->jobs, making->uploads, making->user_pool, reserving, *uploaded,
        [keeping](absl::StatusOr<std::string> id) {
          if (!id.ok()) {
            return EndKeeping(
                keeping,
                OfSweep(id.status(), keeping->making->expansion->Job(static_cast<int>(keeping->next))));
          }
          keeping->ids.push_back(*id);
          keeping->sweep.jobs[keeping->next].reserved_id = *std::move(id);
          ++keeping->next;
          KeepWeights(keeping);
        });
    return;
  }
  making->jobs->CreateSweep(std::move(keeping->sweep), [keeping](absl::StatusOr<StoredSweep> made) {
    EndKeeping(keeping, std::move(made));
  });
}

// Runs after all data is here.
void Finish(const std::shared_ptr<Making>& making) {
  absl::StatusOr<AdmittedSweep> admitted = AdmitAll(*making);
  if (!admitted.ok()) return making->reply(admitted.status());
  const v1::Sweep& wanted = making->request->sweep();
  JobMachine::NewSweep sweep;
  sweep.sweep.set_display_name(wanted.display_name().empty() ? wanted.base().name() : wanted.display_name());
  *sweep.sweep.mutable_base() = wanted.base();
  *sweep.sweep.mutable_grid() = wanted.grid();
  if (wanted.has_random()) *sweep.sweep.mutable_random() = wanted.random();
  sweep.sweep.set_max_running(wanted.max_running());
  if (wanted.has_pruning()) *sweep.sweep.mutable_pruning() = wanted.pruning();
  *sweep.sweep.mutable_objective() = admitted->objective.Get();
  if (making->request->validate_only()) {
    sweep.sweep.set_user(making->caller.user);
    sweep.sweep.set_jobs(static_cast<int>(admitted->jobs.size()));
    for (const JobMachine::NewSweep::Part& job : admitted->jobs) {
      v1::SweepResult* result = sweep.sweep.add_results();
      result->set_index(sweep.sweep.results_size() - 1);
      result->mutable_values()->Add(job.values.begin(), job.values.end());
    }
    making->reply(std::move(sweep.sweep));
    return;
  }
  // Admission may have taken long.
  if (absl::Status status = making->lifecycle->CheckAcceptsJobs(); !status.ok()) {
    return making->reply(std::move(status));
  }
  const int64_t added = static_cast<int64_t>(admitted->jobs.size());
  if (absl::Status status = making->jobs->CheckQueueLength(added); !status.ok()) {
    return making->reply(std::move(status));
  }
  sweep.submitted = wanted;
  sweep.request_id = making->request->request_id();
  sweep.user = making->caller.user;
  sweep.max_queued_jobs = making->quotas->MaxQueuedJobs(making->caller.user);
  sweep.jobs = std::move(admitted->jobs);
  KeepWeights(std::make_shared<Keeping>(making, std::move(sweep), std::move(admitted->weights)));
}

// Fetches the jobs' data from `making->next` on, the same data once.
void BringData(const std::shared_ptr<Making>& making) {
  // If no varied field belongs to the data, all jobs share the first job's.
  const int last = VariesData(making->request->sweep()) ? making->expansion->jobs() : 1;
  for (; making->next < last; ++making->next) {
    const SweepJob job = making->expansion->Job(making->next);
    if (!HasData(job.spec)) continue;
    std::string key = DataKey(job.spec);
    if (making->local.contains(key)) continue;
    making->requests->BringData(
        making->caller, job.spec, [making, key = std::move(key)](absl::StatusOr<HeldJob> held) {
          if (!held.ok()) {
            making->reply(OfSweep(held.status(), making->expansion->Job(making->next)));
            return;
          }
          making->local.emplace(key,
                                JobData{std::move(*held->spec.mutable_dataset()),
                                        std::move(*held->spec.mutable_initial_weights()->mutable_file())});
          making->holds.push_back(std::move(held->hold));
          ++making->next;
          // Post it, because the callback may run before BringData returns.
          making->user_pool->Post(making->caller.user, [making] { BringData(making); });
        });
    return;
  }
  Finish(making);
}

// Returns the most memory that the jobs take until they are created.
int64_t BytesOf(const v1::Sweep& sweep, const SweepExpansion& expansion, const JobRequests* requests) {
  auto bytes = static_cast<int64_t>(expansion.bytes());
  // By their hashes: Making::local has equal data once.
  std::set<size_t> datasets;
  const int last = VariesData(sweep) ? expansion.jobs() : 1;
  for (int i = 0; i < last; ++i) {
    const SweepJob job = expansion.Job(i);
    if (!HasData(job.spec)) continue;
    const v1::DatasetSpec& dataset = job.spec.dataset();
    const std::string key = DataKey(job.spec);
    if (!datasets.insert(std::hash<std::string>()(key)).second) continue;
    // Counts the pinned URLs, and the set behind a name, which may be large.
    bytes += static_cast<int64_t>(key.size() + dataset.SpaceUsedLong() + PinBytes(dataset) +
                                  PinnedBytes(job.spec.initial_weights().file())) +
             requests->DataBytes(job.spec);
  }
  return bytes;
}

void Create(std::shared_ptr<Making> making) {
  const v1::CreateSweepRequest& request = *making->request;
  if (absl::Status status = CheckKnownFields(request); !status.ok()) {
    making->reply(std::move(status));
    return;
  }
  if (!request.request_id().empty() && !request.validate_only()) {
    // Before any refusal: data that the first request used may be gone now.
    absl::StatusOr<std::optional<StoredSweep>> repeated =
        making->jobs->FindRepeatedSweep(making->caller.user, request.request_id(), request.sweep());
    if (!repeated.ok()) {
      making->reply(repeated.status());
      return;
    }
    if (repeated->has_value()) return making->reply(DescribeSweep(**repeated));
  }
  if (absl::Status status = making->lifecycle->CheckAcceptsJobs(); !status.ok()) {
    return making->reply(std::move(status));
  }
  absl::StatusOr<SweepExpansion> expansion = SweepExpansion::Create(&request.sweep());
  if (!expansion.ok()) return making->reply(expansion.status());
  // All jobs are queued at once, whatever max_running says. Check before data is fetched in vain.
  if (absl::Status status = making->jobs->CheckQueueLength(expansion->jobs()); !status.ok()) {
    return making->reply(std::move(status));
  }
  // A short sweep may mean many large jobs, and the sweep may wait for data.
  const int64_t bytes = BytesOf(request.sweep(), *expansion, making->requests);
  if (!KeepMore(making->user_pool, making->caller, bytes, making->reply)) return;
  making->expansion = *std::move(expansion);
  BringData(making);
}

}  // namespace

void CreateSweep(const Caller& caller, const v1::CreateSweepRequest& request, Reply<v1::Sweep> reply,
                 JobMachine* jobs, const Lifecycle* lifecycle, const Quotas* quotas,
                 const JobRequests* requests, Uploads* uploads, FairPool* user_pool) {
  if (absl::Status status = CheckRequest(request); !status.ok()) return reply(std::move(status));
  auto making = std::make_shared<Making>();
  making->jobs = jobs;
  making->lifecycle = lifecycle;
  making->quotas = quotas;
  making->requests = requests;
  making->uploads = uploads;
  making->user_pool = user_pool;
  making->caller = caller;
  making->request = &request;
  // Reads the database; admission reads data sets.
  PostFor(user_pool, caller, request, std::move(reply), [making](Reply<v1::Sweep> reply) {
    making->reply = std::move(reply);
    Create(making);
  });
}

}  // namespace tandem::rpc
