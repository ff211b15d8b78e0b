#ifndef TANDEM_ENGINE_DATA_FORMATS_TEXT_DATASET_H_
#define TANDEM_ENGINE_DATA_FORMATS_TEXT_DATASET_H_

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// DescribeDataset and OpenDataset for the text of a DatasetSpec, before limits. They make the validation
// split themselves: they split the text, so that no sample reaches from one part into the other. Both read
// the whole text. Describing holds none of it. The names of the classes are the vocabulary, as characters in
// UTF-8. Bytes have no names. If `model` names classes, they are the vocabulary. Fields in errors are
// relative to the DatasetSpec.
absl::StatusOr<DatasetInfo> DescribeText(const v1::DatasetSpec& spec, const DataNames& model);
absl::StatusOr<OpenedDataset> OpenText(const v1::DatasetSpec& spec, const DataNames& model);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_TEXT_DATASET_H_
