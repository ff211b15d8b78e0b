#ifndef TANDEM_ENGINE_DATA_FORMATS_CIFAR_DATASET_H_
#define TANDEM_ENGINE_DATA_FORMATS_CIFAR_DATASET_H_

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// A CifarSource, as DescribeDataset and OpenDataset before limits and splits. Describing looks at the files'
// lengths alone, where a compressed file says it; opening reads the files on several threads. Paths of fields
// are relative to the DatasetSpec.
absl::StatusOr<DatasetInfo> DescribeCifar(const v1::CifarSource& source);
absl::StatusOr<OpenedDataset> OpenCifar(const v1::CifarSource& source);
// Gives the training samples as StreamTraining.
absl::Status StreamCifar(const v1::CifarSource& source, UseSamples use);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CIFAR_DATASET_H_
