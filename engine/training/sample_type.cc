#include "engine/training/sample_type.h"

#include "absl/strings/str_cat.h"
#include "engine/layers/model.h"

namespace tandem {

void CheckSampleType(const v1::Model& model, const DatasetInfo& dataset, FieldViolations& violations) {
  const bool tokens = dataset.sample_type == SampleType::kTokens;
  if (tokens && !ReadsTokens(model) && !model.layers().empty()) {
    violations.Add("layers[0]",
                   absl::StrCat("layer \"", model.layers(0).name(),
                                "\" reads numbers, but the data set's samples are tokens; put an "
                                "embedding with a vocabulary_size of ",
                                dataset.classes, " before it"));
  }
  for (int i = 0; i < model.layers_size(); ++i) {
    const v1::Layer& layer = model.layers(i);
    if (!layer.has_embedding()) continue;
    if (!tokens) {
      violations.Add(
          absl::StrCat("layers[", i, "]"),
          absl::StrCat("layer \"", layer.name(), "\" reads tokens, but the data set's samples are ",
                       dataset.shape.ToString(), " numbers; remove it, or give a text"));
    } else if (layer.embedding().vocabulary_size() < dataset.classes) {
      violations.Add(absl::StrCat("layers[", i, "].embedding.vocabulary_size"),
                     absl::StrCat("is ", layer.embedding().vocabulary_size(), ", less than the ",
                                  dataset.classes, " tokens of the data set"));
    }
  }
}

}  // namespace tandem
