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
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// A table of a CsvSource, which is read row by row: it may be longer than memory. Every error is
// INVALID_ARGUMENT and names the file, or a field of the source as FieldViolations do.
struct CsvTable {
  std::string path;
  // Of the columns, in UTF-8; positions from 0 where the table has none.
  std::vector<std::string> names;
  bool header = true;  // Whether the table has names.
  // Positions of columns.
  std::vector<size_t> features;
  std::vector<size_t> targets;
  int64_t rows = 0;  // Those with samples.
};

// Reads a row's fields, of which there are as many as columns. `row` is its number in the file, from 1.
using UseCsvRow = absl::FunctionRef<absl::Status(const CsvTable& table, int64_t row,
                                                 const std::vector<absl::string_view>& fields)>;

// Reads the table at `path`. Its columns are those that `model` names, then those that `source` names, then
// the last one as the target and the others as features. The error of `use` is the result.
absl::StatusOr<CsvTable> ReadCsvTable(const v1::CsvSource& source, const std::string& path,
                                      const DataNames& model, UseCsvRow use);

// The same of a table whose columns are chosen as in `like`: by their names, whatever their order, if these
// tables name their columns, else by position.
absl::StatusOr<CsvTable> ReadCsvTableLike(const v1::CsvSource& source, const std::string& path,
                                          const CsvTable& like, UseCsvRow use);

// The names of the columns at `positions`; none where the table does not name them, or two of them alike.
std::vector<std::string> CsvColumnNames(const CsvTable& table, const std::vector<size_t>& positions);

// CsvSource.delimiter as a character. INVALID_ARGUMENT.
absl::StatusOr<char> CsvDelimiter(const v1::CsvSource& source);

// A number that is finite as a float too, with blanks around it.
bool ParseCsvNumber(absl::string_view text, double* number);

// For messages: where a cell stands, and what it holds.
std::string CsvPlace(const CsvTable& table, int64_t row, size_t column);
std::string QuotedCell(absl::string_view text);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_TABLE_H_
