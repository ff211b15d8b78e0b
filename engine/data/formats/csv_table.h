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
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// A table of a CsvSource, which is read row by row: it may be longer than memory. Every error is
// INVALID_ARGUMENT and names the file, or a field of the source as FieldViolations do.
struct CsvTable {
  std::string path;
  std::vector<std::string> names;  // Of the columns; positions from 0 where the table has none.
  // Positions of columns.
  std::vector<size_t> features;
  std::vector<size_t> targets;
  int64_t rows = 0;  // Those with samples.
};

// Reads a row's fields, of which there are as many as columns. `row` is its number in the file, from 1.
using UseCsvRow = absl::FunctionRef<absl::Status(const CsvTable& table, int64_t row,
                                                 const std::vector<absl::string_view>& fields)>;

// Reads the table at `path` and chooses its columns as `source` says, or as in `like`, which must have the
// same ones; null: as the source says. The error of `use` is the result.
absl::StatusOr<CsvTable> ReadCsvTable(const v1::CsvSource& source, const std::string& path,
                                      const CsvTable* like, UseCsvRow use);

// The features' names in their order, by the first row of the training table, which alone is read; none where
// the table does not name its columns, or two of them alike.
absl::StatusOr<std::vector<std::string>> CsvFeatureNames(const v1::CsvSource& source);

// CsvSource.delimiter as a character. INVALID_ARGUMENT.
absl::StatusOr<char> CsvDelimiter(const v1::CsvSource& source);

// A number that is finite as a float too, with blanks around it.
bool ParseCsvNumber(absl::string_view text, double* number);

// For messages: where a cell stands, and what it holds.
std::string CsvPlace(const CsvTable& table, int64_t row, size_t column);
std::string QuotedCell(absl::string_view text);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_TABLE_H_
