#ifndef TANDEM_SERVER_RPC_JOB_REQUEST_H_
#define TANDEM_SERVER_RPC_JOB_REQUEST_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/data_names.h"
#include "google/protobuf/message.h"
#include "server/auth/token_registry.h"
#include "server/datasets/dataset_registry.h"
#include "server/jobs/job_machine.h"
#include "server/rpc/rpc_context.h"
#include "tandem/v1/job.pb.h"

// The common parts of requests that create jobs.

namespace tandem::rpc {

// The largest spec of a job, sweep, data set or model, in bytes: far above any network written by hand, and
// small enough for the store.
inline constexpr size_t kMaxSpecBytes = 1 << 20;

// INVALID_ARGUMENT for the field "request_id".
absl::Status CheckRequestId(const std::string& id);

// INVALID_ARGUMENT for an unknown field at any depth. If ignored, the field would change the training's
// meaning and be stored with the job. Reads every field, which takes milliseconds, so call it on a pool's
// thread.
absl::Status CheckKnownFields(const google::protobuf::Message& request);

// Checks a whole job whose data is here: its spec, its priority, the queue's and the disk's limits, and if
// the job could ever run for the caller. Reads the data's files. Wrong fields begin with "spec.". Matches the
// data to `names`, if given. The returned job has no request id and no submitted spec.
absl::StatusOr<JobMachine::NewJob> AdmitJob(const RpcContext& context, const Caller& caller,
                                            const v1::JobSpec& spec, const DataNames* names = nullptr);

// RESOURCE_EXHAUSTED for a spec above kMaxSpecBytes. `field` is the spec's field in the request.
absl::Status CheckSpecSize(const google::protobuf::Message& spec, absl::string_view field = "spec");

// A checked job, and a hold that keeps its registered data set until the job exists.
struct AdmittedRequest {
  JobMachine::NewJob job;
  DatasetRegistry::Hold hold;
};

// Fetches a job's data, checks the job as AdmitJob, and calls `then` once, on the pool or before returning.
// Errors are those of AdmitJob and WithLocalData, or UNAVAILABLE if the daemon accepts no jobs. Call it on a
// thread of the pool.
void AdmitWithData(const RpcContext& context, const Caller& caller, const v1::JobSpec& spec,
                   absl::AnyInvocable<void(absl::StatusOr<AdmittedRequest>)> then,
                   std::optional<DataNames> names = std::nullopt);

// Returns the job for a request that only validates.
v1::Job MakeUnsubmitted(JobMachine::NewJob job);

// Checks everything about a job except its data, which is not here yet. So a client learns of a misspelt
// layer before its data is fetched.
absl::Status CheckWithoutData(const RpcContext& context, const v1::JobSpec& spec);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_JOB_REQUEST_H_
