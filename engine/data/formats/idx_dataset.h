#ifndef TANDEM_ENGINE_DATA_FORMATS_IDX_DATASET_H_
#define TANDEM_ENGINE_DATA_FORMATS_IDX_DATASET_H_

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// DescribeDataset and OpenDataset for an IdxSource; limits are DatasetSpec's. Paths of fields are relative to
// the DatasetSpec.
absl::StatusOr<DatasetInfo> DescribeIdx(const v1::IdxSource& source, int64_t train_limit,
                                        int64_t validation_limit);
absl::StatusOr<OpenedDataset> OpenIdx(const v1::IdxSource& source, int64_t train_limit,
                                      int64_t validation_limit);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_IDX_DATASET_H_
