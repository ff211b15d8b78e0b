#include "engine/training/snapshot.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/training/step_graph.h"

namespace tandem {
namespace {

constexpr char kShared[] = "shared/";

std::string PrefixOf(int rank) { return absl::StrCat("replica/", rank, "/"); }

// As a model has it, in float32.
bool IsFinite(const Tensor& tensor) {
  const Tensor narrow = tensor.CastTo(DType::kFloat32);
  const absl::Span<const float> values = narrow.data<float>();
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

// Of statistic `i`, in its own type T: summed in the order of ranks and scaled as an all-reduce does, so that
// a saved model is the one that was validated, bit for bit.
template <typename T>
Tensor MeanStatistic(const Snapshot& snapshot, size_t i) {
  Tensor mean = snapshot[0].statistics[i].second;
  const absl::Span<T> sum = mean.data<T>();
  for (size_t rank = 1; rank < snapshot.size(); ++rank) {
    const absl::Span<const T> own = snapshot[rank].statistics[i].second.data<T>();
    for (size_t j = 0; j < sum.size(); ++j) sum[j] += own[j];
  }
  const T factor = static_cast<T>(1.0 / static_cast<double>(snapshot.size()));
  for (T& number : sum) number = static_cast<T>(number * factor);
  return mean;
}

}  // namespace

std::vector<NamedTensor> CheckpointTensors(Snapshot snapshot) {
  std::vector<NamedTensor> tensors;
  const auto take = [&tensors](const std::string& prefix, std::vector<NamedTensor>& from) {
    for (auto& [name, tensor] : from) tensors.emplace_back(prefix + name, std::move(tensor));
  };
  for (size_t rank = 0; rank < snapshot.size(); ++rank) {
    take(kShared, snapshot[rank].parameters);
    take(kShared, snapshot[rank].optimizer_state);
    take(PrefixOf(static_cast<int>(rank)), snapshot[rank].statistics);
  }
  return tensors;
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

absl::StatusOr<std::vector<NamedTensor>> ModelTensors(const Snapshot& snapshot, bool averaged) {
  std::vector<NamedTensor> tensors;
  std::map<std::string, const Tensor*> state;
  for (const auto& [name, tensor] : snapshot[0].optimizer_state) state[name] = &tensor;
  for (const auto& [name, tensor] : snapshot[0].parameters) {
    const Tensor* value = &tensor;
    if (averaged) {
      const auto average = state.find(AverageName(name));
      // A parameter that is not trained has none.
      if (average != state.end()) value = average->second;
    }
    tensors.emplace_back(name, value->CastTo(DType::kFloat32));
  }
  for (size_t i = 0; i < snapshot[0].statistics.size(); ++i) {
    const auto& [name, first] = snapshot[0].statistics[i];
    const Tensor mean = first.dtype() == DType::kFloat32 ? MeanStatistic<float>(snapshot, i)
                                                         : MeanStatistic<double>(snapshot, i);
    tensors.emplace_back(name, mean.CastTo(DType::kFloat32));
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

std::string AverageName(const std::string& parameter) { return absl::StrCat(kAveragePrefix, parameter); }

}  // namespace tandem
