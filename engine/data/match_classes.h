#ifndef TANDEM_ENGINE_DATA_MATCH_CLASSES_H_
#define TANDEM_ENGINE_DATA_MATCH_CLASSES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/data/data_names.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// Gives `info`, which describes `spec`, the classes of `model`. Returns the model's label for each label of
// the data. An empty vector means that labels stay. INVALID_ARGUMENT with the wrong field, relative to the
// spec, if the model does not know a class.
absl::StatusOr<std::vector<int32_t>> MatchClasses(const v1::DatasetSpec& spec, const DataNames& model,
                                                  DatasetInfo& info);

// Returns `whole` with labels[i] in place of label or token i. Returns `whole` itself if `labels` is empty or
// `whole` is null.
std::unique_ptr<const Dataset> Relabel(std::unique_ptr<const Dataset> whole, const DatasetInfo& info,
                                       const std::vector<int32_t>& labels);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_MATCH_CLASSES_H_
