#ifndef TANDEM_ENGINE_TRAINING_PREDICTION_TABLE_H_
#define TANDEM_ENGINE_TRAINING_PREDICTION_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tensor/tensor.h"
#include "engine/training/trained_model.h"

namespace tandem {

// Reads raw rows of a table and prepares them as the model's training rows were, [rows, inputs]. The model
// has a preparation. Columns are matched by the names in the first row, in any order; other columns are
// ignored. Without names, a row has the model's features, or all columns of its training table. Trusts
// nothing in the text. Adds notices about categories that the model does not know. INVALID_ARGUMENT with the
// row and the column if a cell does not fit.
absl::StatusOr<Tensor> ReadPreparedTable(absl::string_view bytes, const TrainedModel& model,
                                         std::vector<std::string>* notices);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_PREDICTION_TABLE_H_
