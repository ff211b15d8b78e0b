#ifndef TANDEM_ENGINE_DATA_FORMATS_WEBDATASET_H_
#define TANDEM_ENGINE_DATA_FORMATS_WEBDATASET_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// As DescribeDataset, for this source. Reads the headers of all shards. Reads pictures only to find a size or
// a number of channels that the source does not give, and if a split has few bytes.
absl::StatusOr<DatasetInfo> DescribeWebDataset(const v1::WebDatasetSource& source);

// As OpenDataset, for this source. Pictures stay in their files. Gather reads and decodes them on several
// threads. INVALID_ARGUMENT from Gather, with the path: a picture cannot be decoded, or a shard has changed.
absl::StatusOr<OpenedDataset> OpenWebDataset(const v1::WebDatasetSource& source);

// Returns the class of each training sample. Reads the headers of the training shards alone.
absl::StatusOr<std::vector<int32_t>> WebDatasetLabels(const v1::WebDatasetSource& source);

// As StreamTraining, for this source.
absl::Status StreamWebDataset(const v1::WebDatasetSource& source, UseSamples use);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_WEBDATASET_H_
