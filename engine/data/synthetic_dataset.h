#ifndef TANDEM_ENGINE_DATA_SYNTHETIC_DATASET_H_
#define TANDEM_ENGINE_DATA_SYNTHETIC_DATASET_H_

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// DescribeDataset and OpenDataset for a SyntheticSource; limits are DatasetSpec's. A sample's label is
// random, and each of its bytes is the mean of its class's pattern, uniform random bytes, and of noise,
// uniform random bytes of its own. Samples are made when they are gathered: a set takes no memory but its
// patterns'. Paths of fields are relative to the DatasetSpec.
absl::StatusOr<DatasetInfo> DescribeSynthetic(const v1::SyntheticSource& source, int64_t train_limit,
                                              int64_t validation_limit);
absl::StatusOr<OpenedDataset> OpenSynthetic(const v1::SyntheticSource& source, int64_t train_limit,
                                            int64_t validation_limit);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_SYNTHETIC_DATASET_H_
