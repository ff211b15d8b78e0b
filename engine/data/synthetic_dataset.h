#ifndef TANDEM_ENGINE_DATA_SYNTHETIC_DATASET_H_
#define TANDEM_ENGINE_DATA_SYNTHETIC_DATASET_H_

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// DescribeDataset and OpenDataset for a SyntheticSource, before limits and splits. With classes, a sample's
// label is random. Each byte is the mean of two uniform random bytes: of its class's pattern, and of the
// sample's own noise. The message SyntheticSource describes values and vocabularies. Samples are made when
// they are gathered, so only patterns take memory. Fields in errors are relative to the DatasetSpec.
absl::StatusOr<DatasetInfo> DescribeSynthetic(const v1::SyntheticSource& source);
absl::StatusOr<OpenedDataset> OpenSynthetic(const v1::SyntheticSource& source);
// Passes the training samples to `use`, as StreamTraining.
absl::Status StreamSynthetic(const v1::SyntheticSource& source, UseSamples use);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_SYNTHETIC_DATASET_H_
