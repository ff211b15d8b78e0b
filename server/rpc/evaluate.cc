#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "server/rpc/adapted_source.h"
#include "server/rpc/deferred_source.h"
#include "server/rpc/handlers.h"
#include "server/rpc/job_requests.h"
#include "server/rpc/model_task.h"

namespace tandem::rpc {
namespace {

constexpr int64_t kMaxBatch = 65536;

absl::Status CheckRequest(const v1::EvaluateRequest& request) {
  TANDEM_RETURN_IF_ERROR(CheckSpecSize(request, "dataset"));
  TANDEM_RETURN_IF_ERROR(ParseJobName(request.name()).status());
  FieldViolations violations;
  if (request.batch_size() < 0 || request.batch_size() > kMaxBatch) {
    violations.Add("batch_size",
                   absl::StrCat("is ", request.batch_size(), "; it must be from 1 to ", kMaxBatch));
  }
  CheckSamples(request.dataset(), request.split(), violations);
  return violations.ToStatus();
}

}  // namespace

Source<v1::EvaluateResponse> Evaluate(const Caller& caller, const v1::EvaluateRequest& request,
                                      JobMachine* jobs, const Scheduler* scheduler, ModelWorkers* models,
                                      const DatasetCatalog* datasets, const LocalData* local_data,
                                      FairPool* user_pool) {
  TANDEM_RETURN_IF_ERROR(CheckRequest(request));
  // May read every file of a data set.
  return std::make_unique<DeferredSource<v1::EvaluateResponse>>(
      user_pool, caller.user, static_cast<int64_t>(request.SpaceUsedLong()),
      [jobs, scheduler, models, datasets, local_data, user = caller.user,
       request = v1::EvaluateRequest(request)]() mutable -> Source<v1::EvaluateResponse> {
        TANDEM_ASSIGN_OR_RETURN(internal::v1::ModelTask task,
                                MakeModelTask(request.name(), request.artifact(), jobs, scheduler));
        TANDEM_ASSIGN_OR_RETURN(
            *task.mutable_dataset(),
            ResolveDataset(request.has_dataset() ? request.dataset() : task.spec().dataset(), user, datasets,
                           local_data));
        *task.mutable_evaluate() = std::move(request);
        TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<ModelCall> call, models->Start(user, std::move(task)));
        return std::make_unique<AdaptedSource<v1::EvaluateResponse, internal::v1::ModelTaskOutput>>(
            std::move(call),
            [](internal::v1::ModelTaskOutput& output) { return std::move(*output.mutable_evaluate()); });
      });
}

}  // namespace tandem::rpc
