#ifndef TANDEM_ENGINE_DATA_FORMATS_IDX_DATASET_H_
#define TANDEM_ENGINE_DATA_FORMATS_IDX_DATASET_H_

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// DescribeDataset and OpenDataset for an IdxSource, before limits and splits. Fields in errors are relative
// to the DatasetSpec.
absl::StatusOr<DatasetInfo> DescribeIdx(const v1::IdxSource& source);
absl::StatusOr<OpenedDataset> OpenIdx(const v1::IdxSource& source);
// Passes the training samples to `use`, as StreamTraining.
absl::Status StreamIdx(const v1::IdxSource& source, UseSamples use);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_IDX_DATASET_H_
