#ifndef TANDEM_ENGINE_LAYERS_MODEL_TEMPLATE_H_
#define TANDEM_ENGINE_LAYERS_MODEL_TEMPLATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/model.pb.h"

namespace tandem {

// The facts that a model takes from the data if the model does not give them.
struct TemplateData {
  Shape sample;         // Of a single sample, without the batch.
  int64_t outputs = 0;  // Classes, vocabulary tokens, or numbers of a target.
  // The columns of categories of a prepared table, in the order of their inputs, without a dimension. Empty
  // for other data. Nothing if the data are not known.
  std::optional<std::vector<v1::EmbeddedColumn>> category_columns = {};
};

// Returns whether samples [a, b, c] are probably images [height, width, channels], which networks do not
// accept: only the last extent is 1, 3 or 4.
bool LooksChannelsLast(const Shape& sample);

// Returns the network's field of v1::ModelTemplate: "resnet18". Returns "" if none is set.
absl::string_view TemplateName(const v1::ModelTemplate& model_template);

// Returns whether a network reads images [channels, height, width]. False if none is set.
bool TakesImages(const v1::ModelTemplate& model_template);

// Returns the data that a network was designed for, such as [3, 224, 224] and 1000 classes.
TemplateData CustomaryData(const v1::ModelTemplate& model_template);

// Returns whether ExpandTemplate takes the columns of embed_categories from the data, because the model does
// not give them.
bool TakesCategoryColumns(const v1::Model& model);

// Replaces a model's template by its layers. Sets the input's shape and the name if they are missing. The
// layers have no defaults yet, and pass CheckModel with them. INVALID_ARGUMENT with all wrong fields,
// relative to the Model ("template.resnet18.width"): layers beside a template, numbers out of range, or
// samples that the network does not accept. After an error the model is unchanged.
//
// A model without a template stays, except that a first layer embed_categories takes its missing columns from
// `data`. The input's shape is then set if it is missing. INVALID_ARGUMENT with the field
// "layers[0].embed_categories" if the data have no such columns, or are not known.
absl::Status ExpandTemplate(const TemplateData& data, v1::Model* model);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_MODEL_TEMPLATE_H_
