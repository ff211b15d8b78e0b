#include "engine/training/snapshot.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/training/replica_average.h"
#include "engine/training/step_graph.h"

namespace tandem {
namespace {

constexpr char kShared[] = "shared/";

std::string PrefixOf(int rank) { return absl::StrCat("replica/", rank, "/"); }

// Checks the value in float32, as in a model.
bool IsFinite(const Tensor& tensor) {
  const Tensor narrow = tensor.CastTo(DType::kFloat32);
  const absl::Span<const float> values = narrow.data<float>();
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

// Returns the mean over the replicas of entry i of `part`. It is computed as by an all-reduce, so a saved
// model equals the validated model bit for bit.
Tensor MeanOfReplicas(const Snapshot& snapshot, std::vector<NamedTensor> ReplicaVariables::*part, size_t i,
                      absl::Span<const double> shares) {
  std::vector<const Tensor*> values;
  for (const ReplicaVariables& replica : snapshot) {
    // State that all replicas share is in the first replica alone.
    if (i < (replica.*part).size()) values.push_back(&(replica.*part)[i].second);
  }
  return values.size() == 1 ? *values[0] : MeanOf(values, shares);
}

}  // namespace

std::vector<NamedTensor> CheckpointTensors(Snapshot snapshot) {
  std::vector<NamedTensor> tensors;
  const auto take = [&](size_t rank, std::vector<NamedTensor> ReplicaVariables::*part) {
    const bool alike =
        snapshot.size() > 1 ? (snapshot[1].*part).empty() : part != &ReplicaVariables::statistics;
    const std::string prefix = alike ? kShared : PrefixOf(static_cast<int>(rank));
    for (auto& [name, tensor] : snapshot[rank].*part) {
      tensors.emplace_back(prefix + name, std::move(tensor));
    }
  };
  for (size_t rank = 0; rank < snapshot.size(); ++rank) {
    take(rank, &ReplicaVariables::parameters);
    take(rank, &ReplicaVariables::optimizer_state);
    take(rank, &ReplicaVariables::statistics);
  }
  return tensors;
}

std::map<std::string, Tensor> AverageCheckpoint(std::map<std::string, Tensor> checkpoint,
                                                absl::Span<const double> shares) {
  std::map<std::string, Tensor> averaged;
  const std::string first = PrefixOf(0);
  for (auto& [name, tensor] : checkpoint) {
    if (absl::StartsWith(name, kShared)) averaged.emplace(name, std::move(tensor));
    if (!absl::StartsWith(name, first)) continue;
    std::vector<const Tensor*> values;
    for (size_t rank = 0; rank < shares.size(); ++rank) {
      const auto own =
          checkpoint.find(absl::StrCat(PrefixOf(static_cast<int>(rank)), name.substr(first.size())));
      if (own != checkpoint.end() && own->second.shape() == tensor.shape() &&
          own->second.dtype() == tensor.dtype()) {
        values.push_back(&own->second);
      }
    }
    if (values.size() != shares.size()) continue;  // Restoring reports the missing tensor.
    averaged.emplace(absl::StrCat(kShared, name.substr(first.size())), MeanOf(values, shares));
  }
  return averaged;
}

std::map<std::string, const Tensor*> TensorsOfReplica(const std::map<std::string, Tensor>& checkpoint,
                                                      int rank) {
  std::map<std::string, const Tensor*> variables;
  const std::string own = PrefixOf(rank);
  for (const auto& [name, tensor] : checkpoint) {
    for (const absl::string_view prefix : {absl::string_view(kShared), absl::string_view(own)}) {
      if (absl::StartsWith(name, prefix)) variables[name.substr(prefix.size())] = &tensor;
    }
  }
  return variables;
}

absl::StatusOr<std::vector<NamedTensor>> ModelTensors(const Snapshot& snapshot, bool averaged,
                                                      absl::Span<const double> shares) {
  std::vector<NamedTensor> tensors;
  const auto add = [&](const std::string& name, std::vector<NamedTensor> ReplicaVariables::*part, size_t i) {
    tensors.emplace_back(name, MeanOfReplicas(snapshot, part, i, shares).CastTo(DType::kFloat32));
  };
  const ReplicaVariables& first = snapshot[0];
  std::map<std::string, size_t> state;
  for (size_t i = 0; i < first.optimizer_state.size(); ++i) state[first.optimizer_state[i].first] = i;
  for (size_t i = 0; i < first.parameters.size(); ++i) {
    const std::string& name = first.parameters[i].first;
    // A frozen parameter has no average.
    const auto average = averaged ? state.find(AverageName(name)) : state.end();
    if (average != state.end()) {
      add(name, &ReplicaVariables::optimizer_state, average->second);
    } else {
      add(name, &ReplicaVariables::parameters, i);
    }
  }
  std::map<std::string, size_t> statistics;
  for (size_t i = 0; i < first.statistics.size(); ++i) statistics[first.statistics[i].first] = i;
  for (size_t i = 0; i < first.statistics.size(); ++i) {
    const std::string& name = first.statistics[i].first;
    if (absl::StartsWith(name, kAveragePrefix)) continue;
    // A statistic of a frozen layer has no average.
    const auto average = averaged ? statistics.find(AverageName(name)) : statistics.end();
    add(name, &ReplicaVariables::statistics, average != statistics.end() ? average->second : i);
  }
  return tensors;
}

absl::Status CheckFinite(const ReplicaVariables& variables, int64_t steps) {
  for (const auto& [name, tensor] : variables.parameters) {
    if (IsFinite(tensor)) continue;
    return absl::OutOfRangeError(
        absl::StrCat("parameter \"", name, "\" is not finite after step ", steps,
                     ", though the loss was until then; lower the learning rate or look at the data"));
  }
  return absl::OkStatus();
}

std::string AverageName(const std::string& variable) { return absl::StrCat(kAveragePrefix, variable); }

}  // namespace tandem
