#ifndef TANDEM_ENGINE_DATA_FORMATS_CSV_REPORT_H_
#define TANDEM_ENGINE_DATA_FORMATS_CSV_REPORT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/table.pb.h"

namespace tandem {

// The columns and the form of a training table's file, for people.
struct CsvReport {
  // In the order of the table, at most the first 1,000.
  std::vector<v1::TableColumn> columns = {};
  bool is_utf8 = true;
  bool has_quotes = false;  // Any of the table's first rows has a quote.
};

// Reads the training table of `spec`, which `info` describes. Needs about a megabyte for each column with
// many different cells. Errors as DescribeDataset.
absl::StatusOr<CsvReport> ReportCsv(const v1::DatasetSpec& spec, const DatasetInfo& info);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_REPORT_H_
