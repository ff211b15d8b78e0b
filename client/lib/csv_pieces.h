#ifndef TANDEM_CLIENT_LIB_CSV_PIECES_H_
#define TANDEM_CLIENT_LIB_CSV_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::client {

// A part of the rows of a table, as a table. Each part begins with the first row of the whole table, because
// this row may name the columns.
struct CsvPiece {
  std::string content;
  // The number of rows, with the first row of the whole table.
  int64_t rows = 0;
};

// Cuts a table of comma-separated values (RFC 4180) between rows. The delimiter may be a comma, a semicolon,
// a tab or '|'. A line "sep=;" before the first row stays there. Blank lines are left out. Each piece has at
// most `rows` rows, and at most `bytes` bytes unless two rows have more. INVALID_ARGUMENT, with the end of a
// sentence "cannot cut FILE: ", if the table has no row, or if a quoted field does not end.
absl::StatusOr<std::vector<CsvPiece>> CutCsv(absl::string_view content, size_t bytes, int64_t rows);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_CSV_PIECES_H_
