#ifndef TANDEM_SERVER_RPC_PERMISSIONS_H_
#define TANDEM_SERVER_RPC_PERMISSIONS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/admission/dataset_catalog.h"
#include "server/auth/caller.h"
#include "server/datasets/dataset_registry.h"
#include "server/datasets/uploads.h"
#include "server/jobs/job_machine.h"
#include "server/rpc/handlers.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {

// PERMISSION_DENIED if the priority is for administrators and the caller is none.
absl::Status CheckPriority(const Caller& caller, int priority);

// PERMISSION_DENIED with `reason` if the caller neither owns `what` ("the job \"jobs/lenet-k3v7qa\"") nor is
// an administrator. An empty owner is nobody.
absl::Status CheckIsOwner(const Caller& caller, absl::string_view what, const std::string& owner,
                          absl::string_view reason);

// PERMISSION_DENIED if the data set belongs to another user or nobody, and the caller is no administrator.
// Pins `request` to the checked set. Reads the data sets' folders.
absl::Status CheckDatasetOwner(const Caller& caller, v1::DeleteDatasetRequest* request,
                               const DatasetRegistry* registry, const DatasetCatalog* datasets);

// PERMISSION_DENIED if the upload belongs to another user and the caller is no administrator. NOT_FOUND: no
// such upload.
absl::Status CheckUploadOwner(const Caller& caller, const std::string& id, Uploads* uploads);

// PERMISSION_DENIED if the job belongs to another user and the caller is no administrator. NOT_FOUND: no such
// job. Reads the database.
absl::Status CheckOwner(const Caller& caller, const std::string& id, const std::string& name,
                        JobMachine* jobs);

// Calls `change(id, reply)` if `name` is the name of a job that the caller may change, at once or on the
// pool. Otherwise replies with the error. That reply turns NOT_FOUND into a message that names the job.
// `request` is kept until the reply.
template <typename Response, typename Change>
void WithOwnJob(const Caller& caller, const std::string& name, const google::protobuf::Message& request,
                Reply<Response> reply, JobMachine* jobs, FairPool* pool, Change change) {
  absl::StatusOr<std::string> id = ParseJobName(name);
  if (!id.ok()) return reply(id.status());
  auto work = [jobs, caller, name, id = *std::move(id),
               change = std::move(change)](Reply<Response> reply) mutable {
    if (absl::Status status = CheckOwner(caller, id, name, jobs); !status.ok()) {
      return reply(std::move(status));
    }
    change(id, Reply<Response>([name, reply = std::move(reply)](absl::StatusOr<Response> response) mutable {
             if (!response.ok()) response = ExplainJobError(response.status(), name);
             reply(std::move(response));
           }));
  };
  if (caller.is_admin()) return work(std::move(reply));
  PostFor(pool, caller, request, std::move(reply), std::move(work));
}

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_PERMISSIONS_H_
