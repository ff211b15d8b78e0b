#include "engine/training/trained_model.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/training/initial_weights.h"
#include "engine/training/plan.h"

namespace tandem {

absl::StatusOr<TrainedModel> ReadTrainedModel(const v1::JobSpec& spec, const std::string& path) {
  TrainedModel model;
  model.spec = spec;
  FillDefaults(&model.spec);
  TANDEM_ASSIGN_OR_RETURN(model.weights, ReadModelWeights(model.spec.model(), path));
  TANDEM_ASSIGN_OR_RETURN(const SafetensorsHeader header, ReadSafetensorsHeader(path));
  const Shape sample(std::vector<int64_t>(model.spec.model().input().shape().begin(),
                                          model.spec.model().input().shape().end()));
  absl::StatusOr<TrainedOn> trained_on = ReadTrainedOn(header.metadata, sample);
  if (!trained_on.ok()) {
    return absl::Status(trained_on.status().code(), absl::StrCat(path, ": ", trained_on.status().message()));
  }
  model.trained_on = *std::move(trained_on);
  return model;
}

absl::Status WriteWeights(const TrainedModel& model, Variables& variables) {
  for (const auto& [name, value] : model.weights) {
    TANDEM_RETURN_IF_ERROR(variables.Write(name, value));
  }
  return absl::OkStatus();
}

}  // namespace tandem
