#ifndef TANDEM_ENGINE_DATA_FORMATS_CSV_DATASET_H_
#define TANDEM_ENGINE_DATA_FORMATS_CSV_DATASET_H_

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// DescribeDataset and OpenDataset for the CsvSource of a DatasetSpec, before limits. They make the validation
// split themselves, because the preparation of the rows is computed from the training rows alone. Both read
// the whole tables. Describing holds a row at a time. An error names the row, from 1 for the file's first,
// and the column. Columns and classes that `model` names are matched to the model, and rows are prepared as
// the model's were. Fields in errors are relative to the DatasetSpec.
absl::StatusOr<DatasetInfo> DescribeCsv(const v1::DatasetSpec& spec, const DataNames& model);
absl::StatusOr<OpenedDataset> OpenCsv(const v1::DatasetSpec& spec, const DataNames& model);
// Passes the training samples to `use`, as StreamTraining. If the table is prepared, computing the
// preparation holds the numbers of all training rows, 8 bytes each.
absl::Status StreamCsv(const v1::DatasetSpec& spec, UseSamples use);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_DATASET_H_
