#ifndef TANDEM_ENGINE_DATA_FORMATS_TEXT_DATASET_H_
#define TANDEM_ENGINE_DATA_FORMATS_TEXT_DATASET_H_

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// The text of a DatasetSpec, as DescribeDataset and OpenDataset before limits: a validation split is done
// here, as it is the text that is split, and no sample reaches from one part into the other. Both read the
// text whole; describing holds none of it. The classes' names are the vocabulary: characters as UTF-8; bytes
// have none. If `model` names classes, they are the vocabulary. Paths of fields are relative to the
// DatasetSpec.
absl::StatusOr<DatasetInfo> DescribeText(const v1::DatasetSpec& spec, const DataNames& model);
absl::StatusOr<OpenedDataset> OpenText(const v1::DatasetSpec& spec, const DataNames& model);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_TEXT_DATASET_H_
