#ifndef TANDEM_ENGINE_DATA_MATCH_COLUMNS_H_
#define TANDEM_ENGINE_DATA_MATCH_COLUMNS_H_

#include "absl/status/status.h"
#include "engine/data/data_names.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// Adds a notice to `info`, which describes `spec`, if columns are matched to the model's by position because
// only one of the two names its columns. Data without names get the model's names. INVALID_ARGUMENT, relative
// to the spec, if the normalization has a number for each column and the model orders the columns
// differently.
absl::Status MatchColumns(const v1::DatasetSpec& spec, const DataNames& model, DatasetInfo& info);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_MATCH_COLUMNS_H_
