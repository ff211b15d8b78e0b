#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/post_for_user.h"

namespace tandem::rpc {

void Shutdown(const RpcContext& context, const Caller& caller, const v1::ShutdownRequest& request,
              Reply<v1::ShutdownResponse> reply) {
  if (!request.cancel_jobs()) {
    reply(v1::ShutdownResponse());
    context.lifecycle->Stop();
    return;
  }
  PostToLook(context, caller, request, std::move(reply), [&context](Reply<v1::ShutdownResponse> reply) {
    // Watchers stay connected, to see their jobs' ends.
    context.lifecycle->RefuseJobs();
    context.drain->CancelAll([&context, reply = std::move(reply)](absl::StatusOr<int> cancelled) mutable {
      if (!cancelled.ok()) {
        // The daemon continues, unless another shutdown is in progress.
        context.lifecycle->AcceptJobsAgain();
        reply(cancelled.status());
        return;
      }
      v1::ShutdownResponse response;
      response.set_cancelled_jobs(*cancelled);
      reply(std::move(response));
      context.lifecycle->Stop();
    });
  });
}

}  // namespace tandem::rpc
