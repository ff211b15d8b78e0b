#include "engine/training/snapshot.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
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

// Returns whether all tensors, of one type and shape, have the same bytes.
bool AreEqual(absl::Span<const Tensor* const> values) {
  return std::all_of(values.begin(), values.end(), [&](const Tensor* value) {
    return value->bytes() == 0 || std::memcmp(value->raw_data(), values[0]->raw_data(), value->bytes()) == 0;
  });
}

// Returns the mean over the replicas of a variable of `part`. It is computed as by an all-reduce, so a saved
// model equals the validated model bit for bit.
Tensor MeanOfReplicas(const Snapshot& snapshot, std::vector<NamedTensor> ReplicaVariables::*part,
                      const std::string& name, absl::Span<const double> shares) {
  std::vector<const Tensor*> values;
  for (const ReplicaVariables& replica : snapshot) {
    const auto found = std::find_if((replica.*part).begin(), (replica.*part).end(),
                                    [&](const NamedTensor& one) { return one.first == name; });
    // State that all replicas share is in the first replica alone.
    if (found != (replica.*part).end()) values.push_back(&found->second);
  }
  return values.size() == 1 ? *values[0] : MeanOf(values, shares);
}

}  // namespace

std::vector<NamedTensor> CheckpointTensors(Snapshot snapshot) {
  std::vector<NamedTensor> tensors;
  const auto take = [&](std::vector<NamedTensor> ReplicaVariables::*part) {
    // The names of variables in which replicas differ.
    std::set<std::string> own;
    const bool is_own = part == &ReplicaVariables::statistics || part == &ReplicaVariables::residuals;
    if (snapshot.size() > 1 || is_own) {
      for (const NamedTensor& variable : snapshot.back().*part) own.insert(variable.first);
    }
    for (size_t rank = 0; rank < snapshot.size(); ++rank) {
      for (auto& [name, tensor] : snapshot[rank].*part) {
        const std::string prefix = own.count(name) > 0 ? PrefixOf(static_cast<int>(rank)) : kShared;
        tensors.emplace_back(prefix + name, std::move(tensor));
      }
    }
  };
  take(&ReplicaVariables::parameters);
  take(&ReplicaVariables::optimizer_state);
  take(&ReplicaVariables::statistics);
  take(&ReplicaVariables::residuals);
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
    // The rounded mean of equal numbers may be another number. A batch_norm with sync has equal statistics in
    // all replicas.
    averaged.emplace(absl::StrCat(kShared, name.substr(first.size())),
                     AreEqual(values) ? *values[0] : MeanOf(values, shares));
  }
  return averaged;
}

std::map<std::string, Tensor> MeansOf(const std::set<std::string>& names,
                                      const std::map<std::string, Tensor>& checkpoint,
                                      absl::Span<const double> shares) {
  std::map<std::string, Tensor> own;
  for (const std::string& name : names) {
    for (size_t rank = 0; rank < shares.size(); ++rank) {
      const auto found = checkpoint.find(absl::StrCat(PrefixOf(static_cast<int>(rank)), name));
      if (found != checkpoint.end()) own.insert(*found);
    }
  }
  return AverageCheckpoint(std::move(own), shares);
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
  const auto add = [&](const std::string& name, std::vector<NamedTensor> ReplicaVariables::*part,
                       const std::string& by) {
    tensors.emplace_back(name, MeanOfReplicas(snapshot, part, by, shares).CastTo(DType::kFloat32));
  };
  const ReplicaVariables& first = snapshot[0];
  std::set<std::string> averages;
  const auto has_average = [&](const std::string& name) {
    return averaged && averages.count(AverageName(name)) > 0;
  };
  for (const auto& [name, tensor] : first.optimizer_state) averages.insert(name);
  for (const auto& [name, tensor] : first.parameters) {
    // A frozen parameter has no average.
    if (has_average(name)) {
      add(name, &ReplicaVariables::optimizer_state, AverageName(name));
    } else {
      add(name, &ReplicaVariables::parameters, name);
    }
  }
  averages.clear();
  for (const auto& [name, tensor] : first.statistics) averages.insert(name);
  for (const auto& [name, tensor] : first.statistics) {
    if (absl::StartsWith(name, kAveragePrefix)) continue;
    // A statistic of a frozen layer has no average.
    add(name, &ReplicaVariables::statistics, has_average(name) ? AverageName(name) : name);
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
