#include <utility>

#include "engine/base/mutex.h"
#include "server/rpc/handlers.h"
#include "server/rpc/quota_checks.h"

namespace tandem::rpc {
namespace {

// Held from the look at what a user's files take until the upload counts in it: of two at once, one sees the
// other. Never destroyed, as calls know no order of that.
Mutex& Gate() {
  static Mutex* const gate = new Mutex;
  return *gate;
}

}  // namespace

void CreateUpload(const RpcContext& context, const Caller& caller, const v1::CreateUploadRequest& request,
                  Reply<v1::Upload> reply) {
  // It makes files.
  context.pool->Post([&context, user = caller.user, &request, reply = std::move(reply)]() mutable {
    v1::Upload wanted = request.upload();
    // What takes long is done before.
    context.uploads->RemoveExpired();
    MutexLock lock(&Gate());
    if (absl::Status status = CheckDiskUse(context, user, wanted.bytes()); !status.ok()) {
      return reply(std::move(status));
    }
    wanted.set_user(user);
    reply(context.uploads->Create(wanted));
  });
}

}  // namespace tandem::rpc
