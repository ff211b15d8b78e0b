#ifndef TANDEM_ENGINE_DATA_SYNTHETIC_DATASET_H_
#define TANDEM_ENGINE_DATA_SYNTHETIC_DATASET_H_

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// A SyntheticSource, as DescribeDataset and OpenDataset before limits and splits. With classes, a sample's
// label is random, and each of its bytes is the mean of its class's pattern, uniform random bytes, and of
// noise, uniform random bytes of its own. With values and with a vocabulary, as the message says. Samples are
// made when they are gathered: a set takes no memory but its patterns'. Paths of fields are relative to the
// DatasetSpec.
absl::StatusOr<DatasetInfo> DescribeSynthetic(const v1::SyntheticSource& source);
absl::StatusOr<OpenedDataset> OpenSynthetic(const v1::SyntheticSource& source);
// Gives the training samples as StreamTraining.
absl::Status StreamSynthetic(const v1::SyntheticSource& source, UseSamples use);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_SYNTHETIC_DATASET_H_
