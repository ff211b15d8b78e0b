#include <sys/stat.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "server/rpc/handlers.h"
#include "server/rpc/pages.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {
namespace {

// Returns the known checkpoints whose files exist: the record may still have a checkpoint that a worker just
// removed.
absl::StatusOr<v1::ListCheckpointsResponse> List(const std::string& id, const std::string& name,
                                                 const Page& page, JobMachine* jobs) {
  const absl::StatusOr<v1::Job> job = jobs->Get(id);
  if (!job.ok()) return ExplainJobError(job.status(), name);
  absl::StatusOr<std::vector<v1::Checkpoint>> known = jobs->Checkpoints(id);
  if (!known.ok()) return ExplainJobError(known.status(), name);
  std::vector<v1::Checkpoint> there;
  for (v1::Checkpoint& checkpoint : *known) {
    struct stat file;
    const bool is_name = StepOfCheckpointFile(checkpoint.file()).ok();
    if (!is_name || stat(absl::StrCat(job->folder(), "/", checkpoint.file()).c_str(), &file) != 0) continue;
    there.push_back(std::move(checkpoint));
  }
  v1::ListCheckpointsResponse response;
  response.set_next_page_token(AddPage(std::move(there), 0, page, response.mutable_checkpoints()));
  return response;
}

}  // namespace

void ListCheckpoints(const Caller& caller, const v1::ListCheckpointsRequest& request,
                     Reply<v1::ListCheckpointsResponse> reply, JobMachine* jobs, FairPool* pool) {
  const std::string id = JobId(request.job());
  if (id.empty()) {
    return reply(FieldError("job", "is required: the job's name, \"jobs/<id>\""));
  }
  const absl::StatusOr<Page> page = PageOf(request);
  if (!page.ok()) return reply(page.status());
  PostFor(pool, caller, request, std::move(reply),
          [jobs, &request, id, page = *page](Reply<v1::ListCheckpointsResponse> reply) {
            reply(List(id, request.job(), page, jobs));
          });
}

}  // namespace tandem::rpc
