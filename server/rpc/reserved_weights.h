#ifndef TANDEM_SERVER_RPC_RESERVED_WEIGHTS_H_
#define TANDEM_SERVER_RPC_RESERVED_WEIGHTS_H_

#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "server/datasets/uploads.h"
#include "server/jobs/job_machine.h"
#include "server/jobs/uploaded_weights.h"
#include "server/rpc/fair_pool.h"

namespace tandem::rpc {

// Reserves the id of a job that starts from an uploaded file, and keeps the file for the job. So the upload
// may be removed at any time. `reserving` has the job's name, owner and limit. Calls `done` once, on the
// user's pool or on the store's writer thread, with the id. INVALID_ARGUMENT with the field
// "spec.initial_weights.file": the upload has no such file (any more). Other errors are those of
// JobMachine::Reserve and KeepUploadedWeights. After an error nothing is kept.
void ReserveWithWeights(JobMachine* jobs, Uploads* uploads, FairPool* user_pool,
                        const JobMachine::NewJob& reserving, UploadedFile uploaded,
                        absl::AnyInvocable<void(absl::StatusOr<std::string>)> done);

// Removes the kept file of a reserved id that no job got, and releases the id. Writes files, so call it on
// the user's pool.
void ReleaseWithWeights(JobMachine* jobs, const std::string& id);

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_RESERVED_WEIGHTS_H_
