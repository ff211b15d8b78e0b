#ifndef TANDEM_ENGINE_DATA_FORMATS_CSV_DATASET_H_
#define TANDEM_ENGINE_DATA_FORMATS_CSV_DATASET_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// A CsvSource, as DescribeDataset and OpenDataset before limits and splits. Both read the tables whole. An
// error names the row, from 1 for the first of the file, and the column. Paths of fields are relative to the
// DatasetSpec.
absl::StatusOr<DatasetInfo> DescribeCsv(const v1::CsvSource& source);
absl::StatusOr<OpenedDataset> OpenCsv(const v1::CsvSource& source);

// The features' names in their order, by the first row of the training table, which alone is read; none where
// the table does not name its columns, or two of them alike.
absl::StatusOr<std::vector<std::string>> CsvFeatureNames(const v1::CsvSource& source);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_DATASET_H_
