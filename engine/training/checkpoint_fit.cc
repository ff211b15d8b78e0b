#include "engine/training/checkpoint_fit.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/dealing.h"
#include "engine/data/sampler.h"
#include "engine/training/model_file.h"
#include "engine/training/plan.h"
#include "engine/training/replica_spec.h"
#include "engine/training/step_graph.h"
#include "engine/training/training_length.h"

namespace tandem {
namespace {

// The most names in a message. Nobody reads more.
constexpr size_t kNamesInMessage = 8;

// Returns the variables of the first replica, by their names in a graph.
std::map<std::string, SafetensorsEntry> VariablesOf(const SafetensorsHeader& checkpoint) {
  std::map<std::string, SafetensorsEntry> variables;
  for (const auto& [name, entry] : checkpoint.tensors) {
    absl::string_view variable = name;
    if (absl::ConsumePrefix(&variable, "shared/") || absl::ConsumePrefix(&variable, "replica/0/")) {
      variables.emplace(variable, entry);
    }
  }
  return variables;
}

std::string Describe(const SafetensorsEntry& entry) {
  return absl::StrCat(ToString(entry.dtype), " ", entry.shape.ToString());
}

void Blame(absl::string_view field, std::vector<std::string> faults, FieldViolations& violations) {
  if (faults.empty()) return;
  const size_t more = faults.size() - std::min(faults.size(), kNamesInMessage);
  faults.resize(faults.size() - more);
  violations.Add(field, absl::StrCat("does not fit the checkpoint: ", absl::StrJoin(faults, ", "),
                                     more > 0 ? absl::StrCat(" and ", more, " more") : ""));
}

}  // namespace

absl::Status CheckCheckpointFits(const v1::JobSpec& job, const DatasetInfo& data,
                                 const SafetensorsHeader& checkpoint) {
  v1::JobSpec spec = job;
  FillDefaults(&spec);
  const int64_t batch = std::min(spec.training().global_batch_size(), data.train_samples);
  const StepShape whole{.samples = DealSamples(batch, LargestLoads(spec.replicas()))[0],
                        .batch_samples = batch,
                        .dtype = spec.replicas().device_kind() == v1::DEVICE_KIND_REFERENCE
                                     ? DType::kFloat64
                                     : DType::kFloat32};
  TANDEM_ASSIGN_OR_RETURN(
      const StepGraph step,
      BuildTrainingGraph(spec, data, PartsOf(whole, spec.training().accumulation_steps()).back()));
  std::map<std::string, SafetensorsEntry> there = VariablesOf(checkpoint);
  std::vector<std::string> of_model, of_optimizer, of_average;
  const auto faults_of = [&](absl::string_view name) -> std::vector<std::string>& {
    // Names of a model's own variables contain no slash.
    if (!absl::StrContains(name, '/')) return of_model;
    return absl::StartsWith(name, kAveragePrefix) ? of_average : of_optimizer;
  };
  for (const ValueId id : step.graph.variables()) {
    const Value& value = step.graph.value(id);
    if (value.variable_kind == VariableKind::kMeter || MayBeMissing(value.name)) continue;
    std::vector<std::string>& faults = faults_of(value.name);
    const auto found = there.find(value.name);
    if (found == there.end()) {
      faults.push_back(absl::StrCat("it has no ", value.name));
      continue;
    }
    if (found->second.shape != value.shape || found->second.dtype != value.dtype) {
      faults.push_back(absl::StrCat(value.name, " is ", Describe(found->second), " there and ",
                                    Describe({.dtype = value.dtype, .shape = value.shape}), " here"));
    }
    there.erase(found);
  }
  for (const auto& [name, entry] : there) {
    if (!MayBeMissing(name)) faults_of(name).push_back(absl::StrCat("it has ", name, " too"));
  }
  FieldViolations violations;
  Blame("model", std::move(of_model), violations);
  // If the parameters differ, the optimizer's state differs too, and is not worth a message.
  if (!violations.empty()) return violations.ToStatus();
  // The optimizer has no state of frozen layers.
  const absl::StatusOr<TrainingState> state = StateOfCheckpoint(checkpoint);
  const absl::StatusOr<v1::JobSpec> writer = state.ok() ? JobIn(state->model) : state.status();
  const bool freezes_alike =
      !writer.ok() || std::equal(job.frozen_layers().begin(), job.frozen_layers().end(),
                                 writer->frozen_layers().begin(), writer->frozen_layers().end());
  Blame(freezes_alike ? "training.optimizer" : "frozen_layers", std::move(of_optimizer), violations);
  Blame("training.weight_average", std::move(of_average), violations);
  return violations.ToStatus();
}

absl::Status CheckSomethingIsLeft(const v1::JobSpec& spec, const DatasetInfo& data,
                                  const TrainingState& state) {
  const v1::Training& training = spec.training();
  const Sampler sampler({.samples = data.train_samples,
                         .batch = training.global_batch_size(),
                         .loads = {1},
                         .drop_last = training.drop_last()});
  const TrainingLength length =
      TrainingLength::Of(training, sampler.steps_per_epoch(), EpochShift(state, sampler.steps_per_epoch()));
  if (state.step < length.steps) return absl::OkStatus();
  const bool counts_steps = training.steps() > 0;
  const std::string has =
      counts_steps ? absl::StrCat("is ", training.steps(), ", and the checkpoint of step ", state.step,
                                  " has them all: nothing is left to train; raise training.steps")
                   : absl::StrCat("is ", training.epochs(), ", and the checkpoint of step ", state.step,
                                  " has ", length.WholeEpochs(state.step),
                                  " epochs: nothing is left to train; raise training.epochs");
  return WithReason(FieldError(counts_steps ? "training.steps" : "training.epochs", has), "NOTHING_TO_TRAIN");
}

absl::StatusOr<TrainingState> StateOfCheckpoint(const SafetensorsHeader& checkpoint) {
  const auto state = checkpoint.metadata.find("state");
  if (state == checkpoint.metadata.end()) return absl::DataLossError("it has no state: it is no checkpoint");
  return TrainingStateFromJson(state->second);
}

}  // namespace tandem
