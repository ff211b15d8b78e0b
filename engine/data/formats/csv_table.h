#ifndef TANDEM_ENGINE_DATA_FORMATS_CSV_TABLE_H_
#define TANDEM_ENGINE_DATA_FORMATS_CSV_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/data_names.h"
#include "engine/data/formats/csv_format.h"
#include "engine/data/table/cell.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// A table of a CsvSource. It is read row by row, so it may be longer than memory. Every error names the file,
// or a field of the source as FieldViolations do. It is RESOURCE_EXHAUSTED if there is not enough memory, and
// otherwise INVALID_ARGUMENT.
struct CsvTable {
  std::string path;
  // The names of the columns, in UTF-8. Positions from 0 if the table has no names.
  std::vector<std::string> names;
  bool header = true;  // Whether the table has names.
  CsvFormat format = {};
  CellRules rules = {};
  // Positions of columns.
  std::vector<size_t> features;
  std::vector<size_t> targets;
  int64_t rows = 0;  // Rows with samples.
};

// Takes the fields of a row, as many as columns. `row` is its number in the file, from 1.
using UseCsvRow = absl::FunctionRef<absl::Status(const CsvTable& table, int64_t row,
                                                 const std::vector<absl::string_view>& fields)>;

// Reads the table at `path`. The columns are those that `model` names, else those that `source` names.
// Otherwise the last column is the target and the others are features. The file's form is found unless
// `source` gives it. Returns the error of `use`.
absl::StatusOr<CsvTable> ReadCsvTable(const v1::CsvSource& source, const std::string& path,
                                      const DataNames& model, UseCsvRow use);

// As ReadCsvTable, with the columns and the form of `like`. Columns are matched by name if both tables name
// their columns, else by position.
absl::StatusOr<CsvTable> ReadCsvTableLike(const v1::CsvSource& source, const std::string& path,
                                          const CsvTable& like, UseCsvRow use);

// Returns the names of the columns at `positions`. Empty if the table does not name its columns, or if two
// names are equal.
std::vector<std::string> CsvColumnNames(const CsvTable& table, const std::vector<size_t>& positions);

// Returns the place of a cell, for messages.
std::string CsvPlace(const CsvTable& table, int64_t row, size_t column);

// Turns the error of a table into an error of `field`, which names the table. An error in the choice of
// columns has its own field already.
absl::Status CsvErrorOf(const char* field, const absl::Status& status);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_TABLE_H_
