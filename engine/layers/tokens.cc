#include "engine/layers/tokens.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/layers/blocks.h"
#include "engine/layers/layer_kind.h"
#include "engine/layers/model.h"

namespace tandem {
namespace {

constexpr char kInputName[] = "input";

bool TakesTokens(const v1::Layer& layer) {
  const LayerKind* const kind = FindLayerKind(layer.kind_case());
  return kind != nullptr && kind->reads_tokens();
}

// Returns whether layer `i` reads the model's input: by name, or as the first layer without inputs.
bool ReadsInput(const Layers& layers, int i) {
  const v1::Layer& layer = layers[i];
  if (layer.inputs().empty()) return i == 0;
  return std::find(layer.inputs().begin(), layer.inputs().end(), kInputName) != layer.inputs().end();
}

void CheckWithinBlocks(const v1::Layer& layer, const std::string& path, FieldViolations& violations) {
  std::string checked;
  ForEachBlock(layer, [&](const Layers& block, const std::string& block_path, const std::string&) {
    const std::string field = absl::StrCat(path, ".", block_path);
    if (field == checked) return;  // A repeated block.
    checked = field;
    for (int i = 0; i < block.size(); ++i) {
      const std::string within = absl::StrCat(field, "[", i, "]");
      if (TakesTokens(block[i])) {
        violations.Add(within,
                       absl::StrCat("layer \"", block[i].name(),
                                    "\" reads tokens, which only the model's input is; move it out of "
                                    "the block, before it"));
      }
      CheckWithinBlocks(block[i], within, violations);
    }
  });
}

}  // namespace

void CheckTokens(const Layers& layers, FieldViolations& violations) {
  const v1::Layer* reader = nullptr;
  for (int i = 0; i < layers.size() && reader == nullptr; ++i) {
    if (TakesTokens(layers[i]) && ReadsInput(layers, i)) reader = &layers[i];
  }
  for (int i = 0; i < layers.size(); ++i) {
    const std::string path = absl::StrCat("layers[", i, "]");
    CheckWithinBlocks(layers[i], path, violations);
    if (TakesTokens(layers[i]) && !ReadsInput(layers, i)) {
      violations.Add(path, absl::StrCat("layer \"", layers[i].name(),
                                        "\" reads tokens, which only the model's input is; make it the first "
                                        "layer, or give it the inputs [input]"));
    }
    if (reader != nullptr && !TakesTokens(layers[i]) && ReadsInput(layers, i)) {
      violations.Add(path, absl::StrCat("layer \"", layers[i].name(),
                                        "\" reads the input, which is tokens, as \"", reader->name(),
                                        "\" reads it too; let it read what \"", reader->name(), "\" gives"));
    }
  }
}

bool ReadsTokens(const v1::Model& model) {
  for (int i = 0; i < model.layers_size(); ++i) {
    if (TakesTokens(model.layers(i)) && ReadsInput(model.layers(), i)) return true;
  }
  return false;
}

}  // namespace tandem
