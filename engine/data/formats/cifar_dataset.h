#ifndef TANDEM_ENGINE_DATA_FORMATS_CIFAR_DATASET_H_
#define TANDEM_ENGINE_DATA_FORMATS_CIFAR_DATASET_H_

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// DescribeDataset and OpenDataset for a CifarSource, before limits and splits. Describing checks the files'
// lengths alone, if a compressed file states its length. Opening reads the files on several threads. Fields
// in errors are relative to the DatasetSpec.
absl::StatusOr<DatasetInfo> DescribeCifar(const v1::CifarSource& source);
absl::StatusOr<OpenedDataset> OpenCifar(const v1::CifarSource& source);
// Passes the training samples to `use`, as StreamTraining.
absl::Status StreamCifar(const v1::CifarSource& source, UseSamples use);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CIFAR_DATASET_H_
