#ifndef TANDEM_SERVER_RPC_JOB_REQUESTS_H_
#define TANDEM_SERVER_RPC_JOB_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/data_names.h"
#include "google/protobuf/message.h"
#include "server/admission/admission.h"
#include "server/auth/caller.h"
#include "server/datasets/dataset_registry.h"
#include "server/datasets/uploads.h"
#include "server/jobs/job_machine.h"
#include "server/rpc/lifecycle.h"
#include "server/rpc/local_data.h"
#include "server/rpc/quotas.h"
#include "server/scheduler/scheduler.h"
#include "tandem/v1/job.pb.h"

namespace tandem::rpc {

// The largest spec of a job, sweep, data set or model, in bytes. Far above any network written by hand, and
// small enough for the store.
inline constexpr size_t kMaxSpecBytes = 1 << 20;

// INVALID_ARGUMENT for the field "request_id".
absl::Status CheckRequestId(const std::string& id);

// INVALID_ARGUMENT for an unknown field at any depth. If ignored, the field would change the training's
// meaning and be stored with the job. Reads every field, which takes milliseconds, so call it on a pool's
// thread.
absl::Status CheckKnownFields(const google::protobuf::Message& request);

// RESOURCE_EXHAUSTED for a spec above kMaxSpecBytes. `field` is the spec's field in the request.
absl::Status CheckSpecSize(const google::protobuf::Message& spec, absl::string_view field = "spec");

// Returns the job for a request that only validates.
v1::Job MakeUnsubmitted(JobMachine::NewJob job);

// A checked job, and a hold that keeps its registered data set until the job exists.
struct AdmittedRequest {
  JobMachine::NewJob job;
  DatasetRegistry::Hold hold;
};

// A job with the URLs of its data set and initial weights pinned, and a hold that keeps a registered data
// set.
struct HeldJob {
  v1::JobSpec spec;
  DatasetRegistry::Hold hold;
};

// The common parts of requests that create jobs. Thread-safe. Call all methods on a thread of the users'
// pool.
class JobRequests {
 public:
  // All pointers must outlive this object.
  JobRequests(const Admission* admission, const JobMachine* jobs, const Scheduler* scheduler,
              const Lifecycle* lifecycle, DatasetRegistry* registry, Uploads* uploads,
              const LocalData* local_data, const Quotas* quotas)
      : admission_(admission),
        jobs_(jobs),
        scheduler_(scheduler),
        lifecycle_(lifecycle),
        registry_(registry),
        uploads_(uploads),
        local_data_(local_data),
        quotas_(quotas) {}

  // Checks a whole job whose data is here. Checks its spec and priority, and the queue's and the disk's
  // limits. Also checks if the job could ever run for the caller, and if the caller may read an upload that
  // has the initial weights. Reads the data's files. Wrong fields begin
  // with "spec.". Matches the data to `names`, if given. The returned job has no request id and no submitted
  // spec.
  absl::StatusOr<JobMachine::NewJob> Admit(const Caller& caller, const v1::JobSpec& spec,
                                           const DataNames* names = nullptr) const;

  // Fetches a job's data, checks the job as Admit, and calls `then` once, on the pool or before returning.
  // Errors are those of Admit and BringData, or UNAVAILABLE if the daemon accepts no jobs.
  void AdmitWithData(const Caller& caller, const v1::JobSpec& spec,
                     absl::AnyInvocable<void(absl::StatusOr<AdmittedRequest>)> then,
                     std::optional<DataNames> names = std::nullopt) const;

  // Fetches a job's data set and initial weights, and calls `then` once, on the pool or before returning.
  // Before a fetch, checks everything about the job except its data, so that a client learns of a misspelt
  // layer before its data is fetched. Other errors are those of LocalData::EnsureJob.
  void BringData(const Caller& caller, const v1::JobSpec& spec,
                 absl::AnyInvocable<void(absl::StatusOr<HeldJob>)> then) const;

  // Returns the most memory that BringData keeps until the callback; 0 if it does not wait.
  int64_t DataBytes(const v1::JobSpec& spec) const { return local_data_->BytesOfJob(spec); }

 private:
  absl::Status CheckWithoutData(const Caller& caller, const v1::JobSpec& spec) const;

  const Admission* const admission_;
  const JobMachine* const jobs_;
  const Scheduler* const scheduler_;
  const Lifecycle* const lifecycle_;
  DatasetRegistry* const registry_;
  Uploads* const uploads_;
  const LocalData* const local_data_;
  const Quotas* const quotas_;
};

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_JOB_REQUESTS_H_
