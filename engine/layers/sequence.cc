#include "engine/layers/sequence.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr char kInputName[] = "input";
// The path of a model's own layers. Paths within blocks are longer.
constexpr char kModelPath[] = "layers";
constexpr int kMaxLayerNameLength = 64;

// Positions of layers by name. kInputIndex is the sequence's input.
using LayerIndex = std::map<std::string, int>;
constexpr int kInputIndex = -1;
constexpr int kUnknown = -2;

std::string PathOf(absl::string_view path, int layer) { return absl::StrCat(path, "[", layer, "]"); }

// Checks a sequence.
class SequenceCheck {
 public:
  SequenceCheck(const Layers& layers, absl::string_view path, const absl::optional<Shape>& input,
                FieldViolations& violations)
      : layers_(layers),
        path_(path),
        input_(input),
        violations_(violations),
        shapes_(layers.size()),
        read_(layers.size(), false) {}

  std::vector<absl::optional<Shape>> Run() {
    for (int i = 0; i < layers_.size(); ++i) CheckLayer(i);
    CheckAllAreRead();
    return std::move(shapes_);
  }

 private:
  void CheckLayer(int i) {
    const v1::Layer& layer = layers_[i];
    const LayerKind* const kind = FindLayerKind(layer.kind_case());
    if (kind == nullptr) {
      violations_.Add(PathOf(path_, i),
                      "names no kind of layer that is known; give one, such as conv2d, max_pool2d or dense");
    }
    CheckName(i);
    const std::vector<int> inputs = FindInputs(i, kind);
    bool known = true;
    for (const int input : inputs) {
      if (input >= 0) read_[input] = true;
      if (input == kUnknown && i > 0) read_[i - 1] = true;  // The error is reported once.
      known &= input != kUnknown;
    }
    earlier_.emplace(layer.name(), i);
    if (kind == nullptr) return;
    if (kind->must_be_first() && (path_ != kModelPath || i > 0)) {
      violations_.Add(absl::StrCat(PathOf(path_, i), ".", kind->field()),
                      absl::StrCat("layer \"", layer.name(),
                                   "\" must be the model's first layer; move the layer to the beginning"));
      return;
    }

    const absl::Status fields = kind->Check(layer);
    violations_.AddAll(PathOf(path_, i), fields);
    if (!fields.ok() || !known) return;
    std::vector<Shape> shapes;
    for (const int input : inputs) {
      const absl::optional<Shape>& shape = input == kInputIndex ? input_ : shapes_[input];
      if (!shape.has_value()) return;
      shapes.push_back(*shape);
    }
    absl::StatusOr<Shape> output = kind->InferFrom(layer, shapes);
    if (output.ok() && output->elements() > kMaxSampleElements) {
      output = FieldError(kind->field(),
                          absl::StrCat("its output ", output->ToString(), " is too large: a sample may have ",
                                       kMaxSampleElements, " elements"));
    }
    if (output.ok()) {
      shapes_[i] = *std::move(output);
    } else {
      violations_.AddAll(PathOf(path_, i), Explain(i, inputs, shapes, output.status()));
    }
  }

  void CheckName(int i) {
    const std::string& name = layers_[i].name();
    const std::string field = absl::StrCat(PathOf(path_, i), ".name");
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
      return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
    });
    if (name == kInputName) {
      violations_.Add(field, "is \"input\", which stands for the sample; choose another name");
    } else if (!plain || name.size() > kMaxLayerNameLength) {
      violations_.Add(field, absl::StrCat("may have letters, digits, '_', '-' and '.', and at most ",
                                          kMaxLayerNameLength, " characters"));
    } else if (const auto found = earlier_.find(name); found != earlier_.end()) {
      violations_.Add(field, absl::StrCat("is \"", name, "\", the name of ", PathOf(path_, found->second),
                                          " too; names are unique"));
    }
  }

  // Returns the positions of layer `i`'s inputs. Reports a wrong input and returns kUnknown for it.
  std::vector<int> FindInputs(int i, const LayerKind* kind) {
    const v1::Layer& layer = layers_[i];
    const int count = std::max(1, layer.inputs_size());
    const int least = kind == nullptr ? 1 : kind->least_inputs();
    const int most = kind == nullptr ? count : kind->most_inputs();
    if (count < least || count > most) {
      violations_.Add(absl::StrCat(PathOf(path_, i), ".inputs"),
                      count > most
                          ? absl::StrCat("has ", count, " names, but layer \"", layer.name(), "\" reads ",
                                         most == 1 ? "one input" : absl::StrCat("at most ", most))
                          : absl::StrCat("has ", layer.inputs_size(), " names, but layer \"", layer.name(),
                                         "\" reads ", least, " or more; name earlier layers or \"input\""));
      return {kUnknown};
    }
    if (layer.inputs().empty()) return {i - 1};
    std::vector<int> inputs;
    for (int j = 0; j < layer.inputs_size(); ++j) inputs.push_back(FindInput(i, j));
    return inputs;
  }

  int FindInput(int i, int j) {
    const std::string& name = layers_[i].inputs(j);
    if (name == kInputName) return kInputIndex;
    if (const auto found = earlier_.find(name); found != earlier_.end()) return found->second;
    const bool later = std::any_of(layers_.begin() + i, layers_.end(),
                                   [&](const v1::Layer& other) { return other.name() == name; });
    violations_.Add(
        absl::StrCat(PathOf(path_, i), ".inputs[", j, "]"),
        absl::StrCat("is \"", name, "\", ",
                     later ? "which does not come before this layer; move it up"
                           : "but no layer has that name; give an earlier layer's, or \"input\""));
    return kUnknown;
  }

  // Prepends the layer's name and inputs to a rule's error.
  absl::Status Explain(int i, const std::vector<int>& inputs, const std::vector<Shape>& shapes,
                       const absl::Status& status) const {
    std::string sources;
    for (size_t j = 0; j < inputs.size(); ++j) {
      absl::StrAppend(
          &sources, j == 0 ? "" : ", ", shapes[j].ToString(), " from ",
          inputs[j] == kInputIndex ? "the input" : absl::StrCat("layer \"", layers_[inputs[j]].name(), "\""));
    }
    FieldViolations explained;
    for (const FieldViolation& violation : GetFieldViolations(status)) {
      explained.Add(violation.field, absl::StrCat("layer \"", layers_[i].name(), "\" reads ", sources, ": ",
                                                  violation.description));
    }
    return explained.ToStatus();
  }

  void CheckAllAreRead() {
    for (int i = 0; i + 1 < layers_.size(); ++i) {
      if (read_[i]) continue;
      violations_.Add(PathOf(path_, i),
                      absl::StrCat("layer \"", layers_[i].name(),
                                   "\" is read by no other layer and is not the last; remove it or read it"));
    }
  }

  const Layers& layers_;
  const std::string path_;
  const absl::optional<Shape>& input_;
  FieldViolations& violations_;
  LayerIndex earlier_;
  std::vector<absl::optional<Shape>> shapes_;
  std::vector<bool> read_;
};

absl::StatusOr<ValueId> BuildLayer(const v1::Layer& layer, const std::vector<ValueId>& sources,
                                   const LayerContext& context) {
  const LayerKind& kind = *FindLayerKind(layer.kind_case());
  const std::string name = absl::StrCat(context.prefix, layer.name());
  LayerContext own = context;
  own.frozen |= context.is_frozen != nullptr && (*context.is_frozen)(name);
  if (context.trace == nullptr) return kind.BuildFrom(layer, sources, own);

  std::map<ValueId, std::string>& names = context.trace->names;
  BuiltLayer built;
  built.name = name;
  built.kind = std::string(kind.field());
  for (const ValueId source : sources)
    built.inputs.push_back(names.emplace(source, kInputName).first->second);
  built.first_node = static_cast<NodeId>(context.graph.nodes().size());
  built.first_parameter = context.parameters.size();
  built.first_statistic = context.statistics.size();
  TANDEM_ASSIGN_OR_RETURN(built.output, kind.BuildFrom(layer, sources, own));
  built.end_node = static_cast<NodeId>(context.graph.nodes().size());
  built.end_parameter = context.parameters.size();
  built.end_statistic = context.statistics.size();
  names[built.output] = name;
  context.trace->layers.push_back(built);
  return built.output;
}

}  // namespace

int64_t CountLayers(const Layers& layers) {
  constexpr int64_t kTooMany = kMaxLayers + 1;
  int64_t count = 0;
  for (const v1::Layer& layer : layers) {
    int64_t own = 1;
    if (layer.has_residual()) {
      own += CountLayers(layer.residual().layers()) + CountLayers(layer.residual().shortcut());
    } else if (layer.has_repeat()) {
      // Both factors are at most kTooMany.
      own += CountLayers(layer.repeat().layers());
      own = std::min(own, kTooMany) * std::clamp<int64_t>(layer.repeat().count(), 1, kTooMany);
    }
    count = std::min(count + own, kTooMany);
  }
  return count;
}

void FillSequence(Layers* layers) {
  // A given name stays, also if it equals the default name of another layer.
  std::set<std::string> given;
  for (const v1::Layer& layer : *layers) given.insert(layer.name());
  std::map<std::string, int> counts;
  for (v1::Layer& layer : *layers) {
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

std::vector<absl::optional<Shape>> CheckSequence(const Layers& layers, absl::string_view path,
                                                 const absl::optional<Shape>& input,
                                                 FieldViolations& violations) {
  return SequenceCheck(layers, path, input, violations).Run();
}

absl::StatusOr<ValueId> BuildSequence(const Layers& layers, absl::string_view path, ValueId input,
                                      LayerContext& context) {
  std::map<std::string, ValueId> outputs;
  outputs[kInputName] = input;
  ValueId last = input;
  for (int i = 0; i < layers.size(); ++i) {
    const v1::Layer& layer = layers[i];
    std::vector<ValueId> sources;
    for (const std::string& name : layer.inputs()) sources.push_back(outputs[name]);
    if (sources.empty()) sources.push_back(last);
    absl::StatusOr<ValueId> output = BuildLayer(layer, sources, context);
    if (output.ok() && context.graph.nodes().size() > kMaxOperations) {
      output = absl::InvalidArgumentError(absl::StrCat("makes the network one of more than ", kMaxOperations,
                                                       " operations; take fewer or simpler layers"));
    }
    if (!output.ok()) {
      const std::vector<FieldViolation> within = GetFieldViolations(output.status());
      const std::string field =
          within.empty() ? PathOf(path, i) : absl::StrCat(PathOf(path, i), ".", within[0].field);
      return FieldError(field, absl::StrCat("layer \"", layer.name(), "\": ",
                                            within.empty() ? output.status().message()
                                                           : absl::string_view(within[0].description)));
    }
    outputs[layer.name()] = last = *output;
  }
  return last;
}

}  // namespace tandem
