#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "server/rpc/adapted_source.h"
#include "server/rpc/deferred_source.h"
#include "server/rpc/handlers.h"
#include "server/rpc/model_task.h"

namespace tandem::rpc {
namespace {

constexpr int kMaxInputs = 10000;
constexpr size_t kMaxBytes = 12 << 20;
constexpr size_t kMaxLabelBytes = 512;
constexpr int kMaxTopK = 1000;

// Returns whether the samples are those of a data set.
bool HasDataset(const v1::PredictRequest& request) {
  return request.has_dataset() || request.split() != v1::DATASET_SPLIT_UNSPECIFIED;
}

absl::Status CheckRequest(const v1::PredictRequest& request) {
  TANDEM_RETURN_IF_ERROR(CheckSpecSize(request.dataset(), "dataset"));
  TANDEM_RETURN_IF_ERROR(ParseJobName(request.name()).status());
  FieldViolations violations;
  const bool has_dataset = HasDataset(request);
  if (request.inputs().empty() && !has_dataset) {
    violations.Add("inputs", "is empty; give at least one sample, or dataset or split");
  }
  if (!request.inputs().empty() && has_dataset) {
    violations.Add("inputs", "must be empty, because dataset or split is set; give one of them");
  }
  CheckSamples(request.dataset(), request.split(), violations);
  if (request.inputs_size() > kMaxInputs) {
    violations.Add("inputs", absl::StrCat("has ", request.inputs_size(), " inputs; at most ", kMaxInputs,
                                          " are allowed; send them in several calls"));
  }
  if (request.top_k() < 0 || request.top_k() > kMaxTopK) {
    violations.Add("top_k", absl::StrCat("is ", request.top_k(), "; it must be from 0 to ", kMaxTopK));
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  for (int i = 0; i < request.inputs_size(); ++i) {
    const v1::PredictInput& input = request.inputs(i);
    const std::string field = absl::StrCat("inputs[", i, "]");
    if (input.content_case() == v1::PredictInput::CONTENT_NOT_SET) {
      violations.Add(field, "has no content; give image, npy or csv");
    }
    if (input.label().size() > kMaxLabelBytes) {
      violations.Add(
          absl::StrCat(field, ".label"),
          absl::StrCat("has ", input.label().size(), " bytes; at most ", kMaxLabelBytes, " are allowed"));
    }
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  if (const size_t bytes = request.ByteSizeLong(); bytes > kMaxBytes) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat("inputs: have ", bytes, " bytes; at most ", kMaxBytes,
                                                  " are allowed (12 MiB); send them in several calls")),
        "REQUEST_TOO_LARGE");
  }
  return absl::OkStatus();
}

}  // namespace

Source<v1::PredictResponse> Predict(const Caller& caller, const v1::PredictRequest& request, JobMachine* jobs,
                                    const Scheduler* scheduler, ModelWorkers* models,
                                    const DatasetCatalog* datasets, const LocalData* local_data,
                                    FairPool* pool, FairPool* user_pool) {
  TANDEM_RETURN_IF_ERROR(CheckRequest(request));
  // Without a data set, only the database is read.
  return std::make_unique<DeferredSource<v1::PredictResponse>>(
      HasDataset(request) ? user_pool : pool, caller.user, static_cast<int64_t>(request.SpaceUsedLong()),
      [jobs, scheduler, models, datasets, local_data, user = caller.user,
       request = v1::PredictRequest(request)]() mutable -> Source<v1::PredictResponse> {
        TANDEM_ASSIGN_OR_RETURN(internal::v1::ModelTask task,
                                MakeModelTask(request.name(), request.artifact(), jobs, scheduler));
        if (HasDataset(request)) {
          TANDEM_ASSIGN_OR_RETURN(
              *task.mutable_dataset(),
              ResolveDataset(request.has_dataset() ? request.dataset() : task.spec().dataset(), user,
                             datasets, local_data));
        }
        *task.mutable_predict() = std::move(request);
        TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<ModelCall> call, models->Start(user, std::move(task)));
        return std::make_unique<AdaptedSource<v1::PredictResponse, internal::v1::ModelTaskOutput>>(
            std::move(call),
            [](internal::v1::ModelTaskOutput& output) { return std::move(*output.mutable_predict()); });
      });
}

}  // namespace tandem::rpc
