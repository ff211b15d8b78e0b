#ifndef TANDEM_ENGINE_TRAINING_SAMPLE_TYPE_H_
#define TANDEM_ENGINE_TRAINING_SAMPLE_TYPE_H_

#include "engine/base/field_violations.h"
#include "engine/data/dataset.h"
#include "tandem/v1/model.pb.h"

namespace tandem {

// That a model reads what the data set's samples consist of: tokens by an embedding that has a vector for
// each of them, numbers by other layers. `model` has its defaults; fields are relative to the Model.
void CheckSampleType(const v1::Model& model, const DatasetInfo& dataset, FieldViolations& violations);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_SAMPLE_TYPE_H_
