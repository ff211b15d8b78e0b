#ifndef TANDEM_ENGINE_DATA_FORMATS_CSV_DESCRIPTION_H_
#define TANDEM_ENGINE_DATA_FORMATS_CSV_DESCRIPTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/data/data_names.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/csv_columns.h"
#include "engine/data/formats/csv_table.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// What a look at all rows of a CsvSource's tables decides.
struct CsvDescription {
  DatasetInfo info;
  CsvTable train;
  CsvTable validation;
  // The plans of the training table's columns, unless a model has prepared columns already.
  CsvColumns columns;
  bool scales_target = false;  // The target's scale is to be fitted.
  // Whether each row of the training table belongs to validation. Empty without a split.
  std::vector<bool> split;
};

// Reads the whole tables, a row at a time, and decides how their targets and features become numbers. Scales
// and statistics are not known yet. See DescribeCsv for `model` and for errors.
absl::StatusOr<CsvDescription> ReadCsvDescription(const v1::DatasetSpec& spec, const DataNames& model);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_DESCRIPTION_H_
