#include "engine/layers/model.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/layers/fields.h"

namespace tandem {
namespace {

constexpr char kInputName[] = "input";
constexpr int kMaxNameLength = 64;
// The most elements of one sample anywhere in a network.
constexpr int64_t kMaxSampleElements = int64_t{1} << 36;

// Positions of layers by name; -1 is the sample itself.
using LayerIndex = std::map<std::string, int>;
constexpr int kInputIndex = -1;
constexpr int kUnknown = -2;

std::string Path(int layer) { return absl::StrCat("layers[", layer, "]"); }

void CheckName(const v1::Model& model, int i, const LayerIndex& earlier, FieldViolations& violations) {
  const std::string& name = model.layers(i).name();
  const std::string field = absl::StrCat(Path(i), ".name");
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
  });
  if (name == kInputName) {
    violations.Add(field, "is \"input\", which stands for the sample; choose another name");
  } else if (!plain || name.size() > kMaxNameLength) {
    violations.Add(field, absl::StrCat("may have letters, digits, '_', '-' and '.', and at most ",
                                       kMaxNameLength, " characters"));
  } else if (const auto found = earlier.find(name); found != earlier.end()) {
    violations.Add(field, absl::StrCat("is \"", name, "\", the name of layers[", found->second,
                                       "] too; names are unique"));
  }
}

// Where layer `i` reads from; kUnknown where that is wrong, which is added to `violations`.
int FindInput(const v1::Model& model, int i, const LayerIndex& earlier, FieldViolations& violations) {
  const v1::Layer& layer = model.layers(i);
  if (layer.inputs().empty()) return i - 1;
  if (layer.inputs_size() > 1) {
    violations.Add(absl::StrCat(Path(i), ".inputs"),
                   absl::StrCat("has ", layer.inputs_size(), " names, but layer \"", layer.name(),
                                "\" reads one input"));
    return kUnknown;
  }
  const std::string& name = layer.inputs(0);
  if (name == kInputName) return kInputIndex;
  if (const auto found = earlier.find(name); found != earlier.end()) return found->second;
  const bool later = std::any_of(model.layers().begin() + i, model.layers().end(),
                                 [&](const v1::Layer& other) { return other.name() == name; });
  violations.Add(absl::StrCat(Path(i), ".inputs[0]"),
                 absl::StrCat("is \"", name, "\", ",
                              later ? "which does not come before this layer; move it up"
                                    : "but no layer has that name; give an earlier layer's, or \"input\""));
  return kUnknown;
}

absl::optional<Shape> CheckInputShape(const v1::Model& model, FieldViolations& violations) {
  const Shape shape(std::vector<int64_t>(model.input().shape().begin(), model.input().shape().end()));
  FieldViolations found;
  if (shape.rank() != 1 && shape.rank() != 3) {
    found.Add("input.shape",
              shape.rank() == 0
                  ? "is missing; give [channels, height, width] or [features]"
                  : absl::StrCat("is ", shape.ToString(), "; give [channels, height, width] or [features]"));
  }
  for (int i = 0; i < shape.rank(); ++i) {
    CheckExtent(absl::StrCat("input.shape[", i, "]"), shape[i], 1, found);
  }
  if (found.empty() && shape.elements() > kMaxSampleElements) {
    found.Add("input.shape", absl::StrCat(shape.ToString(), " is too large: a sample may have ",
                                          kMaxSampleElements, " elements"));
  }
  violations.AddAll("", found.ToStatus());
  if (!found.empty()) return absl::nullopt;
  return shape;
}

// Puts the layer's name and its input before what a rule says about the two.
absl::Status Explain(const v1::Model& model, int i, int input, const Shape& input_shape,
                     const absl::Status& status) {
  const std::string source =
      input == kInputIndex ? "the input" : absl::StrCat("layer \"", model.layers(input).name(), "\"");
  FieldViolations explained;
  for (const FieldViolation& violation : GetFieldViolations(status)) {
    explained.Add(violation.field,
                  absl::StrCat("layer \"", model.layers(i).name(), "\" reads ", input_shape.ToString(),
                               " from ", source, ": ", violation.description));
  }
  return explained.ToStatus();
}

void CheckAllAreRead(const v1::Model& model, const std::vector<bool>& read, FieldViolations& violations) {
  for (int i = 0; i + 1 < model.layers_size(); ++i) {
    if (read[i]) continue;
    violations.Add(Path(i),
                   absl::StrCat("layer \"", model.layers(i).name(),
                                "\" is read by no other layer and is not the last; remove it or read it"));
  }
}

}  // namespace

void FillModelDefaults(v1::Model* model) {
  // Whoever gives a name keeps it, before or after a layer that would be called the same.
  std::set<std::string> given;
  for (const v1::Layer& layer : model->layers()) given.insert(layer.name());
  std::map<std::string, int> counts;
  for (v1::Layer& layer : *model->mutable_layers()) {
    const LayerKind* const kind = FindLayerKind(layer.kind_case());
    if (kind == nullptr) continue;
    int& count = ++counts[std::string(kind->field())];
    if (layer.name().empty()) {
      while (given.count(absl::StrCat(kind->field(), "_", count)) != 0) ++count;
      layer.set_name(absl::StrCat(kind->field(), "_", count));
    }
    kind->FillDefaults(&layer);
  }
}

absl::StatusOr<std::vector<Shape>> CheckModel(const v1::Model& model) {
  FieldViolations violations;
  const absl::optional<Shape> sample = CheckInputShape(model, violations);
  if (model.has_template_()) violations.Add("template", "is not supported yet; give layers");
  if (model.layers().empty()) violations.Add("layers", "is empty; give at least one layer");
  if (model.layers_size() > kMaxLayers) {
    violations.Add("layers",
                   absl::StrCat("has ", model.layers_size(), " layers; at most ", kMaxLayers, " are taken"));
    return violations.ToStatus();
  }
  LayerIndex earlier;
  std::vector<absl::optional<Shape>> shapes(model.layers_size());
  std::vector<bool> read(model.layers_size(), false);
  for (int i = 0; i < model.layers_size(); ++i) {
    const v1::Layer& layer = model.layers(i);
    const LayerKind* const kind = FindLayerKind(layer.kind_case());
    if (kind == nullptr) {
      violations.Add(Path(i),
                     "names no kind of layer that is known; give one, such as conv2d, max_pool2d or dense");
    }
    CheckName(model, i, earlier, violations);
    const int input = FindInput(model, i, earlier, violations);
    if (input >= 0) read[input] = true;
    if (input == kUnknown && i > 0) read[i - 1] = true;  // Said once is enough.
    earlier.emplace(layer.name(), i);
    if (kind == nullptr) continue;

    const absl::Status fields = kind->Check(layer);
    violations.AddAll(Path(i), fields);
    if (!fields.ok() || input == kUnknown) continue;
    const absl::optional<Shape>& input_shape = input == kInputIndex ? sample : shapes[input];
    if (!input_shape.has_value()) continue;
    absl::StatusOr<Shape> output = kind->Infer(layer, *input_shape);
    if (output.ok() && output->elements() > kMaxSampleElements) {
      output = FieldError(kind->field(),
                          absl::StrCat("its output ", output->ToString(), " is too large: a sample may have ",
                                       kMaxSampleElements, " elements"));
    }
    if (output.ok()) {
      shapes[i] = *std::move(output);
    } else {
      violations.AddAll(Path(i), Explain(model, i, input, *input_shape, output.status()));
    }
  }
  CheckAllAreRead(model, read, violations);
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  std::vector<Shape> result;
  for (absl::optional<Shape>& shape : shapes) result.push_back(*std::move(shape));
  return result;
}

absl::StatusOr<Network> BuildModel(const v1::Model& model, ValueId input, DType dtype, Graph& graph) {
  Network network;
  LayerContext context{.graph = graph, .dtype = dtype, .parameters = network.parameters};
  std::map<std::string, ValueId> outputs;
  outputs[kInputName] = input;
  network.output = input;
  for (int i = 0; i < model.layers_size(); ++i) {
    const v1::Layer& layer = model.layers(i);
    const ValueId source = layer.inputs().empty() ? network.output : outputs[layer.inputs(0)];
    absl::StatusOr<ValueId> output = FindLayerKind(layer.kind_case())->Build(layer, source, context);
    if (!output.ok()) {
      return FieldError(Path(i), absl::StrCat("layer \"", layer.name(), "\": ", output.status().message()));
    }
    outputs[layer.name()] = network.output = *output;
  }
  return network;
}

}  // namespace tandem
