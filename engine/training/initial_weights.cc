#include "engine/training/initial_weights.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/spelling.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/tensor/half.h"
#include "engine/training/layer_selection.h"

namespace tandem {
namespace {

constexpr char kField[] = "initial_weights";
// The most names in a message. Nobody reads more.
constexpr size_t kNamesInMessage = 12;

std::string SourceField(const v1::InitialWeights& weights) {
  return absl::StrCat(kField, weights.has_file() ? ".file" : ".artifact");
}

std::string SomeNames(std::vector<std::string> names) {
  const size_t more = names.size() > kNamesInMessage ? names.size() - kNamesInMessage : 0;
  names.resize(names.size() - more);
  return absl::StrCat(absl::StrJoin(names, ", "), more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

template <typename Half>
Tensor Widened(const Tensor& halves) {
  Tensor wide(DType::kFloat32, halves.shape());
  std::transform(halves.data<Half>().begin(), halves.data<Half>().end(), wide.data<float>().begin(),
                 [](Half half) { return static_cast<float>(half); });
  return wide;
}

// Returns the numbers of a floating-point tensor as float32.
Tensor ToFloat32(Tensor tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return tensor;
    case DType::kFloat16:
      return Widened<Float16>(tensor);
    case DType::kBFloat16:
      return Widened<BFloat16>(tensor);
    default:
      return tensor.CastTo(DType::kFloat32);
  }
}

using WantedTensor = std::pair<std::string, Shape>;

// Returns the file's nearest names to the missing tensors, each with its shape. Names of the same shape are
// nearest.
std::string NearestNames(const std::vector<WantedTensor>& missing, const SafetensorsHeader& header) {
  // More comparisons would take seconds.
  constexpr size_t kMostCompared = 3, kMostNames = 20000, kMostBytes = 200;
  std::vector<std::string> nearest;
  for (size_t i = 0; i < std::min(missing.size(), kMostCompared); ++i) {
    const auto& [wanted, shape] = missing[i];
    std::optional<std::pair<bool, int>> least;
    std::string best;
    size_t compared = 0;
    for (const auto& [name, entry] : header.tensors) {
      if (name.size() > kMostBytes || ++compared > kMostNames) continue;
      const std::pair<bool, int> distance = {entry.shape != shape, EditDistance(wanted, name)};
      if (least.has_value() && *least <= distance) continue;
      least = distance;
      best = absl::StrCat(name, " ", entry.shape.ToString());
    }
    if (least.has_value() && std::find(nearest.begin(), nearest.end(), best) == nearest.end()) {
      nearest.push_back(best);
    }
  }
  return absl::StrJoin(nearest, ", ");
}

// Returns the selected tensors with their shapes, in the order of the layers.
std::vector<WantedTensor> Wanted(const LayerTable& table, const v1::InitialWeights& weights) {
  const std::set<std::string> of_layers = TensorsOf(table, weights.layers());
  const std::set<std::string> excepted = TensorsOf(table, weights.except_layers());
  std::vector<WantedTensor> wanted;
  const auto add = [&](const std::string& name, const Shape& shape) {
    const bool loaded = weights.layers().empty() || of_layers.count(name) > 0;
    if (loaded && excepted.count(name) == 0) wanted.emplace_back(name, shape);
  };
  for (const Parameter& parameter : table.parameters) add(parameter.name, parameter.shape);
  for (const Statistic& statistic : table.statistics) add(statistic.name, statistic.shape);
  return wanted;
}

// Returns why a file does not have the wanted tensors, for people, or "".
std::string Misfit(const std::vector<WantedTensor>& wanted, const SafetensorsHeader& header) {
  constexpr char kTypes[] = "; F64, F32, F16 and BF16 can be loaded";
  std::vector<WantedTensor> missing;
  std::vector<std::string> differing;
  for (const auto& [name, shape] : wanted) {
    const auto found = header.tensors.find(name);
    const auto other = header.other_tensors.find(name);
    if (other != header.other_tensors.end()) {
      differing.push_back(absl::StrCat(name, " is ", other->second.substr(0, 20), " there", kTypes));
    } else if (found == header.tensors.end()) {
      missing.emplace_back(name, shape);
    } else if (found->second.shape != shape) {
      differing.push_back(absl::StrCat(name, " is ", found->second.shape.ToString(), " there and ",
                                       shape.ToString(), " in this network"));
    } else if (!IsFloatingPoint(found->second.dtype)) {
      differing.push_back(absl::StrCat(name, " is ", ToString(found->second.dtype), " there", kTypes));
    }
  }
  std::vector<std::string> faults;
  if (!missing.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, shape] : missing) names.push_back(name);
    const std::string nearest = NearestNames(missing, header);
    faults.push_back(absl::StrCat(
        "it has no ", SomeNames(std::move(names)),
        nearest.empty() ? "" : absl::StrCat("; the file's nearest names are ", nearest),
        "; name the network's layers as the file does, name the layers to load in layers, or name "
        "those that begin anew in except_layers"));
  }
  if (!differing.empty()) {
    faults.push_back(absl::StrCat(SomeNames(std::move(differing)), "; put such layers into except_layers"));
  }
  return absl::StrJoin(faults, "; ");
}

// Returns the wanted tensors of a file, float32. Reads no others. `misfit` receives the fault, if any.
absl::StatusOr<std::map<std::string, Tensor>> Take(const std::string& path,
                                                   const std::vector<WantedTensor>& wanted,
                                                   std::string* misfit) {
  std::map<std::string, Tensor> taken;
  TANDEM_ASSIGN_OR_RETURN(const SafetensorsHeader header, ReadSafetensorsHeader(path));
  *misfit = Misfit(wanted, header);
  if (!misfit->empty()) return taken;
  std::set<std::string> names;
  for (const auto& [name, shape] : wanted) names.insert(name);
  const absl::StatusOr<SafetensorsHeader> read =
      ReadSafetensorsTensors(path, names, [&](const std::string& name, Tensor tensor) {
        if (IsFloatingPoint(tensor.dtype())) taken[name] = ToFloat32(std::move(tensor));
      });
  TANDEM_RETURN_IF_ERROR(read.status());
  // The file may have been replaced between the two readings.
  *misfit = Misfit(wanted, *read);
  return taken;
}

}  // namespace

void CheckInitialWeights(const v1::JobSpec& spec, FieldViolations& violations) {
  if (!spec.has_initial_weights()) return;
  const v1::InitialWeights& weights = spec.initial_weights();
  if (weights.source_case() == v1::InitialWeights::SOURCE_NOT_SET) {
    violations.Add(kField, "names no source; give artifact, of a job, or file");
  } else if (weights.has_file() && weights.file().empty()) {
    violations.Add(absl::StrCat(kField, ".file"), "is empty; give the path or URL of a safetensors file");
  } else if (weights.has_artifact() && !absl::StartsWith(weights.artifact().job(), "jobs/")) {
    violations.Add(absl::StrCat(kField, ".artifact.job"),
                   absl::StrCat("is \"", weights.artifact().job(), "\"; give \"jobs/<id>\"",
                                absl::StrContains(weights.artifact().job(), "://")
                                    ? ", or give the URL as initial_weights.file"
                                    : ""));
  }
  const absl::StatusOr<LayerTable> table = ListLayers(spec.model());
  if (!table.ok()) return;  // The plan reports the error.
  CheckLayerPatterns(*table, absl::StrCat(kField, ".layers"), weights.layers(), violations);
  CheckLayerPatterns(*table, absl::StrCat(kField, ".except_layers"), weights.except_layers(), violations);
  // If `layers` match nothing, the violation is already there.
  const bool matches = weights.layers().empty() || !TensorsOf(*table, weights.layers()).empty();
  if (matches && Wanted(*table, weights).empty()) {
    violations.Add(kField, "wants nothing of the file; name layers to load");
  }
}

absl::StatusOr<std::set<std::string>> WantedTensors(const v1::JobSpec& spec) {
  TANDEM_ASSIGN_OR_RETURN(const LayerTable table, ListLayers(spec.model()));
  std::set<std::string> names;
  for (const auto& [name, shape] : Wanted(table, spec.initial_weights())) names.insert(name);
  return names;
}

absl::Status CheckWeightsFile(const v1::JobSpec& spec, const std::string& path) {
  const std::string field = SourceField(spec.initial_weights());
  const absl::StatusOr<SafetensorsHeader> header = ReadSafetensorsHeader(path);
  if (!header.ok()) return FieldError(field, header.status().message());
  TANDEM_ASSIGN_OR_RETURN(const LayerTable table, ListLayers(spec.model()));
  const std::string misfit = Misfit(Wanted(table, spec.initial_weights()), *header);
  return misfit.empty() ? absl::OkStatus() : FieldError(field, absl::StrCat(path, ": ", misfit));
}

absl::StatusOr<std::map<std::string, Tensor>> ReadInitialWeights(const v1::JobSpec& spec,
                                                                 const std::string& path) {
  const std::string field = SourceField(spec.initial_weights());
  TANDEM_ASSIGN_OR_RETURN(const LayerTable table, ListLayers(spec.model()));
  std::string misfit;
  absl::StatusOr<std::map<std::string, Tensor>> taken =
      Take(path, Wanted(table, spec.initial_weights()), &misfit);
  if (!taken.ok()) return FieldError(field, taken.status().message());
  if (!misfit.empty()) return FieldError(field, absl::StrCat(path, ": ", misfit));
  return taken;
}

absl::StatusOr<std::map<std::string, Tensor>> ReadModelWeights(const v1::Model& model,
                                                               const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const LayerTable table, ListLayers(model));
  std::string misfit;
  absl::StatusOr<std::map<std::string, Tensor>> taken = Take(path, Wanted(table, {}), &misfit);
  TANDEM_RETURN_IF_ERROR(taken.status());
  if (!misfit.empty()) return absl::DataLossError(absl::StrCat(path, ": ", misfit));
  return taken;
}

absl::StatusOr<std::map<std::string, Tensor>> TakeModelWeights(const v1::Model& model,
                                                               std::map<std::string, Tensor> tensors,
                                                               const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const LayerTable table, ListLayers(model));
  const std::vector<WantedTensor> wanted = Wanted(table, {});
  SafetensorsHeader header;
  for (const auto& [name, tensor] : tensors) header.tensors[name] = {tensor.dtype(), tensor.shape()};
  const std::string misfit = Misfit(wanted, header);
  if (!misfit.empty()) return absl::DataLossError(absl::StrCat(path, ": ", misfit));
  std::map<std::string, Tensor> taken;
  for (const auto& [name, shape] : wanted) taken[name] = ToFloat32(std::move(tensors[name]));
  return taken;
}

}  // namespace tandem
