#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"
#include "server/rpc/permissions.h"

namespace tandem::rpc {
namespace {

constexpr int kMaxPriority = 100;

absl::Status CheckRequest(const v1::UpdateJobRequest& request) {
  FieldViolations violations;
  if (request.update_mask().paths().empty()) {
    violations.Add("update_mask", "is required: the fields to change; only \"priority\" can be changed");
  }
  for (int i = 0; i < request.update_mask().paths_size(); ++i) {
    const std::string& path = request.update_mask().paths(i);
    if (path == "priority") continue;
    violations.Add(absl::StrCat("update_mask.paths[", i, "]"),
                   absl::StrCat("is '", absl::CHexEscape(path.substr(0, 80)),
                                "', but only \"priority\" of a job can be changed"));
  }
  const int priority = request.job().priority();
  if (priority < -kMaxPriority || priority > kMaxPriority) {
    violations.Add("job.priority",
                   absl::StrCat("is ", priority, "; it must be from ", -kMaxPriority, " to ", kMaxPriority));
  }
  return violations.ToStatus();
}

}  // namespace

void UpdateJob(const Caller& caller, const v1::UpdateJobRequest& request, Reply<v1::Job> reply,
               JobMachine* jobs, FairPool* pool) {
  const absl::StatusOr<std::string> id = ParseJobName(request.job().name());
  if (!id.ok()) {
    FieldViolations violations;
    violations.AddAll("job", id.status());
    return reply(violations.ToStatus());
  }
  absl::Status status = CheckRequest(request);
  if (status.ok()) status = CheckPriority(caller, request.job().priority());
  if (!status.ok()) return reply(std::move(status));
  WithOwnJob(caller, request.job().name(), request, std::move(reply), jobs, pool,
             [jobs, &request](const std::string& id, Reply<v1::Job> reply) {
               jobs->SetPriority(id, request.job().priority(), std::move(reply));
             });
}

}  // namespace tandem::rpc
