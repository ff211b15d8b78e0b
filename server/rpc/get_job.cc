#include <utility>

#include "server/rpc/handlers.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {

void GetJob(const Caller& caller, const v1::GetJobRequest& request, Reply<v1::Job> reply, JobMachine* jobs,
            FairPool* pool) {
  const absl::StatusOr<std::string> id = ParseJobName(request.name());
  if (!id.ok()) return reply(id.status());
  PostFor(pool, caller, request, std::move(reply), [jobs, &request, id = *id](Reply<v1::Job> reply) {
    absl::StatusOr<v1::Job> job = jobs->Get(id);
    if (!job.ok()) job = ExplainJobError(job.status(), request.name());
    reply(std::move(job));
  });
}

}  // namespace tandem::rpc
