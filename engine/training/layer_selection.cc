#include "engine/training/layer_selection.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/layers/model.h"
#include "engine/optimizers/parameter_groups.h"

namespace tandem {
namespace {

constexpr char kInputName[] = "input";
// The most names in a message. Nobody reads more.
constexpr size_t kNamesInMessage = 12;

bool KeepsTensors(const BuiltLayer& layer) {
  return layer.end_parameter > layer.first_parameter || layer.end_statistic > layer.first_statistic;
}

std::string SomeNames(const LayerTable& table) {
  std::vector<std::string> names;
  for (const BuiltLayer& layer : table.trace.layers) {
    if (KeepsTensors(layer)) names.push_back(layer.name);
  }
  const bool more = names.size() > kNamesInMessage;
  if (more) names.resize(kNamesInMessage);
  return names.empty() ? "there are none"
                       : absl::StrCat("they are ", absl::StrJoin(names, ", "), more ? ", ..." : "");
}

}  // namespace

DType InputTypeOf(const v1::Model& model) {
  for (int i = 0; i < model.layers_size(); ++i) {
    const v1::Layer& layer = model.layers(i);
    const bool reads_input =
        layer.inputs().empty() ? i == 0 : absl::c_linear_search(layer.inputs(), kInputName);
    if (reads_input && layer.has_embedding()) return DType::kInt32;
  }
  return DType::kFloat32;
}

absl::StatusOr<LayerTable> ListLayers(const v1::Model& model) {
  LayerTable table;
  Graph graph;
  const ValueId input = graph.AddInput(kInputName, InputTypeOf(model), InputShapeOf(model).Batched(1));
  TANDEM_ASSIGN_OR_RETURN(Network network, BuildModel(model, input, DType::kFloat32, /*training=*/false,
                                                      graph, {.trace = &table.trace}));
  table.parameters = std::move(network.parameters);
  table.statistics = std::move(network.statistics);
  return table;
}

bool MatchesAny(const LayerPatterns& patterns, absl::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return MatchesName(pattern, name); });
}

std::set<std::string> TensorsOf(const LayerTable& table, const LayerPatterns& patterns) {
  std::set<std::string> names;
  for (const BuiltLayer& layer : table.trace.layers) {
    if (!MatchesAny(patterns, layer.name)) continue;
    for (size_t i = layer.first_parameter; i < layer.end_parameter; ++i)
      names.insert(table.parameters[i].name);
    for (size_t i = layer.first_statistic; i < layer.end_statistic; ++i)
      names.insert(table.statistics[i].name);
  }
  return names;
}

void CheckLayerPatterns(const LayerTable& table, absl::string_view field, const LayerPatterns& patterns,
                        FieldViolations& violations) {
  for (int i = 0; i < patterns.size(); ++i) {
    const bool matches = std::any_of(
        table.trace.layers.begin(), table.trace.layers.end(),
        [&](const BuiltLayer& layer) { return KeepsTensors(layer) && MatchesName(patterns[i], layer.name); });
    if (matches) continue;
    violations.Add(
        absl::StrCat(field, "[", i, "]"),
        absl::StrCat("is \"", patterns[i], "\", which matches no layer with parameters; ", SomeNames(table)));
  }
}

void CheckFrozenLayers(const v1::JobSpec& spec, FieldViolations& violations) {
  if (spec.frozen_layers().empty()) return;
  const absl::StatusOr<LayerTable> table = ListLayers(spec.model());
  if (!table.ok()) return;  // The plan reports the error.
  CheckLayerPatterns(*table, "frozen_layers", spec.frozen_layers(), violations);
  const std::set<std::string> frozen = TensorsOf(*table, spec.frozen_layers());
  const bool any_left =
      std::any_of(table->parameters.begin(), table->parameters.end(),
                  [&](const Parameter& parameter) { return frozen.count(parameter.name) == 0; });
  if (!any_left) violations.Add("frozen_layers", "are all layers with parameters; leave one to train");
}

BuildOptions BuildOptionsOf(const v1::JobSpec& spec) {
  BuildOptions options;
  if (!spec.frozen_layers().empty()) {
    options.is_frozen = [&spec](absl::string_view name) { return MatchesAny(spec.frozen_layers(), name); };
  }
  return options;
}

}  // namespace tandem
