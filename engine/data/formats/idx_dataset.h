#ifndef TANDEM_ENGINE_DATA_FORMATS_IDX_DATASET_H_
#define TANDEM_ENGINE_DATA_FORMATS_IDX_DATASET_H_

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// An IdxSource, as DescribeDataset and OpenDataset before limits and splits. Paths of fields are relative to
// the DatasetSpec.
absl::StatusOr<DatasetInfo> DescribeIdx(const v1::IdxSource& source);
absl::StatusOr<OpenedDataset> OpenIdx(const v1::IdxSource& source);
// Gives the training samples as StreamTraining.
absl::Status StreamIdx(const v1::IdxSource& source, UseSamples use);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_IDX_DATASET_H_
