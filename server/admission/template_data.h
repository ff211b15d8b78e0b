#ifndef TANDEM_SERVER_ADMISSION_TEMPLATE_DATA_H_
#define TANDEM_SERVER_ADMISSION_TEMPLATE_DATA_H_

#include "engine/data/dataset.h"
#include "engine/layers/model_template.h"
#include "tandem/v1/model.pb.h"

namespace tandem {

// Returns the facts of a data set that a model uses: the sample's shape, the number of outputs and the
// columns of categories. The outputs are classes, tokens or the target's numbers.
inline TemplateData TemplateDataOf(const DatasetInfo& info) {
  const bool values = info.target_type == TargetKind::kValues;
  return {.sample = info.shape,
          .outputs = values ? info.target_shape.elements() : info.classes,
          .category_columns = info.category_columns};
}

// Returns a network's input for a data set.
inline v1::Input InputOf(const DatasetInfo& info) {
  v1::Input input;
  for (const int64_t extent : info.shape.extents()) input.add_shape(extent);
  return input;
}

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_TEMPLATE_DATA_H_
