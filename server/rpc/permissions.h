#ifndef TANDEM_SERVER_RPC_PERMISSIONS_H_
#define TANDEM_SERVER_RPC_PERMISSIONS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/auth/token_registry.h"
#include "server/rpc/handlers.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {

// PERMISSION_DENIED if the priority is for administrators and the caller is none.
absl::Status CheckPriority(const Caller& caller, int priority);

// PERMISSION_DENIED with `reason` if the caller neither owns `what` ("the job \"jobs/lenet-k3v7qa\"") nor is
// an administrator. An empty owner is nobody.
absl::Status CheckIsOwner(const Caller& caller, absl::string_view what, const std::string& owner,
                          absl::string_view reason);

// PERMISSION_DENIED if the data set belongs to another user or nobody, and the caller is no administrator.
// Pins `request` to the checked set. Reads the data sets' folders.
absl::Status CheckDatasetOwner(const RpcContext& context, const Caller& caller,
                               v1::DeleteDatasetRequest* request);

// PERMISSION_DENIED if the upload belongs to another user and the caller is no administrator. NOT_FOUND: no
// such upload.
absl::Status CheckUploadOwner(const RpcContext& context, const Caller& caller, const std::string& id);

// PERMISSION_DENIED if the job belongs to another user and the caller is no administrator. NOT_FOUND: no such
// job. Reads the database.
absl::Status CheckOwner(const RpcContext& context, const Caller& caller, const std::string& id,
                        const std::string& name);

// Calls `change(reply)` if the caller may change the job, at once or on the pool. Otherwise replies with the
// error. `request` names the job as `name`, and is kept until the reply.
template <typename Response, typename Change>
void WithOwnJob(const RpcContext& context, const Caller& caller, const std::string& id,
                const std::string& name, const google::protobuf::Message& request, Reply<Response> reply,
                Change change) {
  if (caller.is_admin()) {
    change(std::move(reply));
    return;
  }
  PostToLook(context, caller, request, std::move(reply),
             [&context, caller, id, name, change = std::move(change)](Reply<Response> reply) mutable {
               if (absl::Status status = CheckOwner(context, caller, id, name); !status.ok()) {
                 reply(std::move(status));
               } else {
                 change(std::move(reply));
               }
             });
}

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_PERMISSIONS_H_
