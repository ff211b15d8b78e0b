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

// What requests that make jobs have in common.

namespace tandem::rpc {

// The largest spec of a job, a sweep, a data set or a model: far above any network that is written by hand,
// far below what would burden the store.
inline constexpr size_t kMaxSpecBytes = 1 << 20;

// INVALID_ARGUMENT for the field "request_id".
absl::Status CheckRequestId(const std::string& id);

// INVALID_ARGUMENT for a field, at any depth, that this version does not know: left alone, it would train
// something else than was meant, and be kept as long as what was made. It looks at every field, which takes
// milliseconds: on a thread of a pool.
absl::Status CheckKnownFields(const google::protobuf::Message& request);

// Checks a job whole, with its data at hand: its spec, its priority, the room that there is for it, and
// whether it could ever run for the caller. It reads the data's files. Fields at fault begin with "spec.".
// The job has no request id, and no submitted spec. Its data are matched to the names of `names`, if it is
// given.
absl::StatusOr<JobMachine::NewJob> AdmitJob(const RpcContext& context, const Caller& caller,
                                            const v1::JobSpec& spec, const DataNames* names = nullptr);

// RESOURCE_EXHAUSTED for a spec, which is the request's `field`, that is larger than that.
absl::Status CheckSpecSize(const google::protobuf::Message& spec, absl::string_view field = "spec");

// A job that was checked, and what keeps its registered data set from being removed until it is made.
struct AdmittedRequest {
  JobMachine::NewJob job;
  DatasetRegistry::Hold hold;
};

// Has a job's data brought near, and calls `then` once, on the pool or before it returns, with the job as
// AdmitJob gives it. Errors are AdmitJob's and WithLocalData's, and those of a daemon that takes no jobs.
// From a thread of the pool.
void AdmitWithData(const RpcContext& context, const Caller& caller, const v1::JobSpec& spec,
                   absl::AnyInvocable<void(absl::StatusOr<AdmittedRequest>)> then,
                   std::optional<DataNames> names = std::nullopt);

// What a job would be that is only checked.
v1::Job MakeUnsubmitted(JobMachine::NewJob job);

// What is wrong with a job but for its data, which is not here yet: nobody should wait for data to hear of
// a misspelt layer.
absl::Status CheckWithoutData(const RpcContext& context, const v1::JobSpec& spec);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_JOB_REQUEST_H_
