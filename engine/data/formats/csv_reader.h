#ifndef TANDEM_ENGINE_DATA_FORMATS_CSV_READER_H_
#define TANDEM_ENGINE_DATA_FORMATS_CSV_READER_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Reads the rows of a table in comma-separated values (RFC 4180): fields in double quotes may hold the
// delimiter, line ends and, doubled, quotes. Lines end in LF or CRLF; blank ones are passed over, and so is a
// byte order mark. Not thread-safe.
class CsvReader {
 public:
  // `text` outlives it.
  CsvReader(absl::string_view text, char delimiter);

  // Reads the next row's fields, which stay until the next call; false at the end. INVALID_ARGUMENT with the
  // row ("row 3: ...") where a quoted field does not end, or more than a delimiter follows it.
  absl::StatusOr<bool> Next(std::vector<absl::string_view>* fields);

  // The number of the row that was read last, from 1.
  int64_t row() const { return row_; }

 private:
  absl::string_view left_;
  const char delimiter_;
  int64_t row_ = 0;
  std::deque<std::string> unquoted_;  // The row's fields that are quoted.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_READER_H_
