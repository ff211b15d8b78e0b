#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {

void Shutdown(const Caller& caller, const v1::ShutdownRequest& request, Reply<v1::ShutdownResponse> reply,
              Lifecycle* lifecycle, JobDrain* drain, FairPool* pool) {
  if (!request.cancel_jobs()) {
    reply(v1::ShutdownResponse());
    lifecycle->Stop();
    return;
  }
  PostFor(pool, caller, request, std::move(reply), [lifecycle, drain](Reply<v1::ShutdownResponse> reply) {
    // Watchers stay connected, to see their jobs' ends.
    lifecycle->RefuseJobs();
    drain->CancelAll([lifecycle, reply = std::move(reply)](absl::StatusOr<int> cancelled) mutable {
      if (!cancelled.ok()) {
        // The daemon continues, unless another shutdown is in progress.
        lifecycle->AcceptJobsAgain();
        reply(cancelled.status());
        return;
      }
      v1::ShutdownResponse response;
      response.set_cancelled_jobs(*cancelled);
      reply(std::move(response));
      lifecycle->Stop();
    });
  });
}

}  // namespace tandem::rpc
