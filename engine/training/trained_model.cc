#include "engine/training/trained_model.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/random_access_env.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/layers/model.h"
#include "engine/training/checkpoint_model.h"
#include "engine/training/initial_weights.h"
#include "engine/training/layer_selection.h"
#include "engine/training/plan.h"

namespace tandem {

namespace {

absl::StatusOr<SafetensorsContents> ReadCheckpointModel(const std::string& path) {
  RandomAccessEnv* const env = RandomAccessEnv::Real();
  TANDEM_RETURN_IF_ERROR(VerifyCheckpoint(env, path));
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointModel> model, CheckpointModel::Open(env, path));
  TANDEM_ASSIGN_OR_RETURN(const std::string bytes, model->Read(0, model->size_bytes()));
  return ParseSafetensors(bytes);
}

}  // namespace

absl::StatusOr<TrainedModel> ReadTrainedModel(const v1::JobSpec& spec, const std::string& path) {
  TrainedModel model;
  model.spec = spec;
  FillDefaults(&model.spec);
  TANDEM_ASSIGN_OR_RETURN(SafetensorsHeader header, ReadSafetensorsHeader(path));
  if (IsCheckpoint(header.metadata)) {
    TANDEM_ASSIGN_OR_RETURN(SafetensorsContents contents, ReadCheckpointModel(path));
    header.metadata = std::move(contents.metadata);
    TANDEM_ASSIGN_OR_RETURN(model.weights,
                            TakeModelWeights(model.spec.model(), std::move(contents.tensors), path));
  } else {
    TANDEM_ASSIGN_OR_RETURN(model.weights, ReadModelWeights(model.spec.model(), path));
  }
  absl::StatusOr<v1::JobSpec> job = JobIn(header.metadata);
  if (!job.ok()) {
    return absl::Status(job.status().code(), absl::StrCat(path, ": ", job.status().message()));
  }
  // The training counted the classes for balance_classes, and gave the settings of classes to their labels.
  // It may have measured the loads.
  *model.spec.mutable_training()->mutable_loss() = std::move(*job->mutable_training()->mutable_loss());
  *model.spec.mutable_replicas() = std::move(*job->mutable_replicas());
  absl::StatusOr<TrainedOn> trained_on = ReadTrainedOn(header.metadata, InputShapeOf(model.spec.model()));
  if (!trained_on.ok()) {
    return absl::Status(trained_on.status().code(), absl::StrCat(path, ": ", trained_on.status().message()));
  }
  model.trained_on = *std::move(trained_on);
  return model;
}

absl::StatusOr<DataNames> NamesOfInitialWeights(const v1::JobSpec& spec, const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const SafetensorsHeader header, ReadSafetensorsHeader(path));
  TANDEM_ASSIGN_OR_RETURN(DataNames names, NamesInModel(header.metadata));
  TANDEM_ASSIGN_OR_RETURN(const std::set<std::string> wanted, WantedTensors(spec));
  TANDEM_ASSIGN_OR_RETURN(const LayerTable table, ListLayers(spec.model()));
  const auto is_loaded = [&](const Parameter& parameter) {
    const std::string layer = parameter.name.substr(0, parameter.name.rfind('.') + 1);
    return std::any_of(wanted.begin(), wanted.end(),
                       [&](const std::string& name) { return absl::StartsWith(name, layer); });
  };
  const bool first = !table.parameters.empty() && is_loaded(table.parameters.front());
  const bool last = !table.parameters.empty() && is_loaded(table.parameters.back());
  // A token is both an input and an output.
  const bool tokens = ReadsTokens(spec.model());
  names.matches_inputs = names.matches_inputs && first;
  names.matches_outputs = names.matches_outputs && (last || (tokens && first));
  names.takes_other_outputs = true;
  return names;
}

absl::StatusOr<std::optional<v1::TablePreparation>> PreparationInWeights(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const SafetensorsHeader header, ReadSafetensorsHeader(path));
  TANDEM_ASSIGN_OR_RETURN(DataNames names, NamesInModel(header.metadata));
  return std::move(names.preparation);
}

absl::Status WriteWeights(const TrainedModel& model, Variables& variables) {
  for (const auto& [name, value] : model.weights) {
    TANDEM_RETURN_IF_ERROR(variables.Write(name, value));
  }
  return absl::OkStatus();
}

}  // namespace tandem
