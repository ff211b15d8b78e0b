#ifndef TANDEM_ENGINE_LAYERS_MODEL_TEMPLATE_H_
#define TANDEM_ENGINE_LAYERS_MODEL_TEMPLATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/model.pb.h"

namespace tandem {

// What a model's template takes from the data where the model leaves it out.
struct TemplateData {
  Shape sample;         // Of one sample, without the batch.
  int64_t outputs = 0;  // Classes, tokens of the vocabulary, or numbers of a target.
};

// Whether samples [a, b, c] are likely images [height, width, channels], which networks here do not take:
// they have 1, 3 or 4 channels by the last extent alone.
bool LooksChannelsLast(const Shape& sample);

// The field of v1::ModelTemplate that names the network: "resnet18"; empty where it names none.
absl::string_view TemplateName(const v1::ModelTemplate& model_template);

// The data that a network was made for, such as [3, 224, 224] and 1000 classes.
TemplateData CustomaryData(const v1::ModelTemplate& model_template);

// Puts the layers of its template in place of the template of a model that has one, and the input's shape and
// the name where they are left out. The layers have no defaults filled in and pass CheckModel then. Leaves a
// model without a template as it is. INVALID_ARGUMENT with all fields at fault, relative to the Model
// ("template.resnet18.width"): layers beside a template, numbers out of range, samples that the network does
// not take; the model is left as it is then.
absl::Status ExpandTemplate(const TemplateData& data, v1::Model* model);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_MODEL_TEMPLATE_H_
