#include <utility>

#include "server/rpc/handlers.h"

namespace tandem::rpc {

void Shutdown(const RpcContext& context, const v1::ShutdownRequest& request,
              Reply<v1::ShutdownResponse> reply) {
  if (!request.cancel_jobs()) {
    reply(v1::ShutdownResponse());
    context.lifecycle->Stop();
    return;
  }
  // Watchers go on, so that they see how their jobs end.
  context.lifecycle->RefuseJobs();
  context.pool->Post([&context, reply = std::move(reply)]() mutable {
    context.drain->CancelAll([&context, reply = std::move(reply)](absl::StatusOr<int> cancelled) mutable {
      if (!cancelled.ok()) {
        // It goes on as before, unless another shutdown stands.
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
