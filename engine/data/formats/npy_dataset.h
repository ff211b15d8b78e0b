#ifndef TANDEM_ENGINE_DATA_FORMATS_NPY_DATASET_H_
#define TANDEM_ENGINE_DATA_FORMATS_NPY_DATASET_H_

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// DescribeDataset and OpenDataset for an NpySource, before limits and splits. Describing reads the headers,
// and targets that are classes or tokens. Fields in errors are relative to the DatasetSpec.
absl::StatusOr<DatasetInfo> DescribeNpy(const v1::NpySource& source);
absl::StatusOr<OpenedDataset> OpenNpy(const v1::NpySource& source);
// Passes the training samples to `use`, as StreamTraining. Reads all numbers. INVALID_ARGUMENT if a number is
// not finite.
absl::Status StreamNpy(const v1::NpySource& source, UseSamples use);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_NPY_DATASET_H_
