#include <utility>

#include "engine/base/status_macros.h"
#include "server/rpc/adapted_source.h"
#include "server/rpc/deferred_source.h"
#include "server/rpc/handlers.h"
#include "server/rpc/model_task.h"

namespace tandem::rpc {

Source<v1::ExportModelResponse> ExportModel(const Caller& caller, const v1::ExportModelRequest& request,
                                            JobMachine* jobs, const Scheduler* scheduler,
                                            ModelWorkers* models, FairPool* pool) {
  TANDEM_RETURN_IF_ERROR(ParseJobName(request.name()).status());
  return std::make_unique<DeferredSource<v1::ExportModelResponse>>(
      pool, caller.user, static_cast<int64_t>(request.SpaceUsedLong()),
      [jobs, scheduler, models, user = caller.user,
       request = v1::ExportModelRequest(request)]() mutable -> Source<v1::ExportModelResponse> {
        TANDEM_ASSIGN_OR_RETURN(internal::v1::ModelTask task,
                                MakeModelTask(request.name(), request.artifact(), jobs, scheduler));
        *task.mutable_export_model() = std::move(request);
        TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<ModelCall> call, models->Start(user, std::move(task)));
        return std::make_unique<AdaptedSource<v1::ExportModelResponse, internal::v1::ModelTaskOutput>>(
            std::move(call),
            [](internal::v1::ModelTaskOutput& output) { return std::move(*output.mutable_export_model()); });
      });
}

}  // namespace tandem::rpc
