#ifndef TANDEM_ENGINE_TRAINING_SAMPLE_TYPE_H_
#define TANDEM_ENGINE_TRAINING_SAMPLE_TYPE_H_

#include "engine/base/field_violations.h"
#include "engine/data/dataset.h"
#include "tandem/v1/model.pb.h"

namespace tandem {

// Checks that a model accepts the data set's samples. Tokens need an embedding with a vector for each token.
// Numbers need other layers. `model` has its defaults. Fields are relative to the Model.
void CheckSampleType(const v1::Model& model, const DatasetInfo& dataset, FieldViolations& violations);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_SAMPLE_TYPE_H_
