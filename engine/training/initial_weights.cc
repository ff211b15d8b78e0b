#include "engine/training/initial_weights.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/safetensors_reader.h"
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

bool IsFloat(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

// Returns the selected tensors with their shapes, in the order of the layers.
std::vector<std::pair<std::string, Shape>> Wanted(const LayerTable& table,
                                                  const v1::InitialWeights& weights) {
  const std::set<std::string> of_layers = TensorsOf(table, weights.layers());
  const std::set<std::string> excepted = TensorsOf(table, weights.except_layers());
  std::vector<std::pair<std::string, Shape>> wanted;
  const auto add = [&](const std::string& name, const Shape& shape) {
    const bool loaded = weights.layers().empty() || of_layers.count(name) > 0;
    if (loaded && excepted.count(name) == 0) wanted.emplace_back(name, shape);
  };
  for (const Parameter& parameter : table.parameters) add(parameter.name, parameter.shape);
  for (const Statistic& statistic : table.statistics) add(statistic.name, statistic.shape);
  return wanted;
}

// Returns why a file does not have the wanted tensors, for people, or "". `find` returns the entry with a
// name, or null.
template <typename Find>
std::string Misfit(const std::vector<std::pair<std::string, Shape>>& wanted, const Find& find) {
  std::vector<std::string> missing;
  std::vector<std::string> differing;
  for (const auto& [name, shape] : wanted) {
    const SafetensorsEntry* const entry = find(name);
    if (entry == nullptr) {
      missing.push_back(name);
    } else if (entry->shape != shape) {
      differing.push_back(absl::StrCat(name, " is ", entry->shape.ToString(), " there and ", shape.ToString(),
                                       " in this network"));
    } else if (!IsFloat(entry->dtype)) {
      differing.push_back(absl::StrCat(name, " is neither F32 nor F64 there"));
    }
  }
  std::vector<std::string> faults;
  if (!missing.empty()) {
    faults.push_back(absl::StrCat("it has no ", SomeNames(std::move(missing)),
                                  "; name the layers to load, or those that begin anew in except_layers"));
  }
  if (!differing.empty()) {
    faults.push_back(absl::StrCat(SomeNames(std::move(differing)), "; put such layers into except_layers"));
  }
  return absl::StrJoin(faults, "; ");
}

// Returns the wanted tensors of a file. `misfit` receives the fault, if any.
std::map<std::string, Tensor> Take(SafetensorsContents contents,
                                   const std::vector<std::pair<std::string, Shape>>& wanted,
                                   std::string* misfit) {
  std::map<std::string, SafetensorsEntry> entries;
  for (const auto& [name, tensor] : contents.tensors) entries[name] = {tensor.dtype(), tensor.shape()};
  *misfit = Misfit(wanted, [&](const std::string& name) {
    const auto found = entries.find(name);
    return found == entries.end() ? nullptr : &found->second;
  });
  std::map<std::string, Tensor> taken;
  if (!misfit->empty()) return taken;
  for (const auto& [name, shape] : wanted) {
    Tensor& tensor = contents.tensors.at(name);
    taken[name] = tensor.dtype() == DType::kFloat32 ? std::move(tensor) : tensor.CastTo(DType::kFloat32);
  }
  return taken;
}

}  // namespace

void CheckInitialWeights(const v1::JobSpec& spec, FieldViolations& violations) {
  if (!spec.has_initial_weights()) return;
  const v1::InitialWeights& weights = spec.initial_weights();
  if (weights.source_case() == v1::InitialWeights::SOURCE_NOT_SET) {
    violations.Add(kField, "names no source; give artifact, of a job, or file");
  } else if (weights.has_file() && weights.file().empty()) {
    violations.Add(absl::StrCat(kField, ".file"), "is empty; give the path of a safetensors file");
  } else if (weights.has_artifact() && !absl::StartsWith(weights.artifact().job(), "jobs/")) {
    violations.Add(absl::StrCat(kField, ".artifact.job"),
                   absl::StrCat("is \"", weights.artifact().job(), "\"; give \"jobs/<id>\""));
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
  const std::string misfit = Misfit(Wanted(table, spec.initial_weights()), [&](const std::string& name) {
    const auto found = header->tensors.find(name);
    return found == header->tensors.end() ? nullptr : &found->second;
  });
  return misfit.empty() ? absl::OkStatus() : FieldError(field, absl::StrCat(path, ": ", misfit));
}

absl::StatusOr<std::map<std::string, Tensor>> ReadInitialWeights(const v1::JobSpec& spec,
                                                                 const std::string& path) {
  const std::string field = SourceField(spec.initial_weights());
  absl::StatusOr<SafetensorsContents> contents = ReadSafetensors(path);
  if (!contents.ok()) return FieldError(field, contents.status().message());
  TANDEM_ASSIGN_OR_RETURN(const LayerTable table, ListLayers(spec.model()));
  std::string misfit;
  std::map<std::string, Tensor> taken =
      Take(*std::move(contents), Wanted(table, spec.initial_weights()), &misfit);
  if (!misfit.empty()) return FieldError(field, absl::StrCat(path, ": ", misfit));
  return taken;
}

absl::StatusOr<std::map<std::string, Tensor>> ReadModelWeights(const v1::Model& model,
                                                               const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(SafetensorsContents contents, ReadSafetensors(path));
  TANDEM_ASSIGN_OR_RETURN(const LayerTable table, ListLayers(model));
  std::string misfit;
  std::map<std::string, Tensor> taken = Take(std::move(contents), Wanted(table, {}), &misfit);
  if (!misfit.empty()) return absl::DataLossError(absl::StrCat(path, ": ", misfit));
  return taken;
}

}  // namespace tandem
