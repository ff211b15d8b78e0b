#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/layers/model_template.h"
#include "engine/training/fit_data.h"
#include "engine/training/model_description.h"
#include "server/admission/template_data.h"
#include "server/rpc/handlers.h"
#include "server/rpc/job_requests.h"
#include "server/rpc/local_data.h"
#include "server/rpc/post_for.h"

namespace tandem::rpc {
namespace {

// A viewer's call fetches nothing and sees only cached data. If the cache has no data of a URL, the catalog
// reports an error.
absl::StatusOr<v1::DatasetSpec> DataFor(const Caller& caller, const v1::DatasetSpec& spec,
                                        const LocalData* local_data) {
  if (caller.role < v1::TOKEN_ROLE_SUBMITTER) return spec;
  return local_data->EnsureNow(caller.user, spec, "dataset");
}

// Returns the requested model with its template expanded.
absl::StatusOr<v1::Model> FindModel(const Caller& caller, const v1::DescribeModelRequest& request,
                                    JobMachine* jobs, const DatasetCatalog* datasets,
                                    const LocalData* local_data) {
  if (request.has_job()) {
    const std::string id = JobId(request.job());
    if (id.empty()) return FieldError("job", "is not the name of a job; write \"jobs/<id>\"");
    const absl::StatusOr<v1::Job> job = jobs->Get(id);
    if (!job.ok()) return ExplainJobError(job.status(), request.job());
    return job->spec().model();
  }
  if (!request.has_model())
    return FieldError("model", "is required, unless job is given; give the model to describe");
  v1::Model model = request.model();
  TemplateData data = CustomaryData(model.template_());
  FieldViolations violations;
  if (request.has_dataset()) {
    TANDEM_ASSIGN_OR_RETURN(const v1::DatasetSpec dataset, DataFor(caller, request.dataset(), local_data));
    v1::JobSpec job;
    *job.mutable_model() = model;
    const absl::StatusOr<v1::DatasetSpec> resolved = datasets->Resolve(dataset);
    const absl::StatusOr<DatasetInfo> info =
        resolved.ok() ? datasets->Describe(FitData(job, *resolved)) : resolved.status();
    // An error that is not the request's fault keeps its code.
    if (!info.ok() && !absl::IsInvalidArgument(info.status())) return info.status();
    if (info.ok()) {
      data = TemplateDataOf(*info);
      if (!model.has_input()) *model.mutable_input() = InputOf(*info);
    }
    violations.AddAll("dataset", info.status());
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  violations.AddAll("model", ExpandTemplate(data, &model));
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return model;
}

absl::StatusOr<v1::ModelDescription> Describe(const Caller& caller, const v1::DescribeModelRequest& request,
                                              JobMachine* jobs, const DatasetCatalog* datasets,
                                              const LocalData* local_data) {
  const int64_t batch = request.batch_size() == 0 ? 1 : request.batch_size();
  if (batch < 1 || batch > kMaxDescribedBatch) {
    return FieldError("batch_size",
                      absl::StrCat("is ", batch, "; it must be from 1 to ", kMaxDescribedBatch));
  }
  TANDEM_ASSIGN_OR_RETURN(const v1::Model model, FindModel(caller, request, jobs, datasets, local_data));
  absl::StatusOr<v1::ModelDescription> description = tandem::DescribeModel(model, batch);
  if (description.ok() || !absl::IsInvalidArgument(description.status())) return description;
  FieldViolations violations;
  violations.AddAll("model", description.status());
  return violations.ToStatus();
}

}  // namespace

void DescribeModel(const Caller& caller, const v1::DescribeModelRequest& request,
                   Reply<v1::ModelDescription> reply, JobMachine* jobs, const DatasetCatalog* datasets,
                   const LocalData* local_data, FairPool* user_pool) {
  if (absl::Status status = CheckSpecSize(request, "model"); !status.ok()) return reply(std::move(status));
  // May read a data set.
  PostFor(user_pool, caller, request, std::move(reply),
          [caller, &request, jobs, datasets, local_data](Reply<v1::ModelDescription> reply) {
            reply(Describe(caller, request, jobs, datasets, local_data));
          });
}

}  // namespace tandem::rpc
