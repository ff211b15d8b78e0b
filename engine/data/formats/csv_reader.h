#ifndef TANDEM_ENGINE_DATA_FORMATS_CSV_READER_H_
#define TANDEM_ENGINE_DATA_FORMATS_CSV_READER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// The characters that structure a table.
struct CsvSyntax {
  char delimiter = ',';
  char quote = '"';
  std::string comment = "";  // Lines that begin with this text are skipped. Empty: none are.
};

// Reads the rows of a table in comma-separated values (RFC 4180). Fields in quotes may hold the delimiter,
// line ends and doubled quotes. Lines end in LF or CRLF. Blank lines, comments and a byte order mark are
// skipped. Holds little more than a row at a time. Not thread-safe.
class CsvReader {
 public:
  // Reads up to `size` bytes of a table, fewer only at its end. Returns their number.
  using Source = std::function<absl::StatusOr<int64_t>(char* data, int64_t size)>;

  // The limits of a row: its bytes if the table is read in pieces, and its number of fields.
  static constexpr int64_t kMaxRowBytes = int64_t{16} << 20;
  static constexpr size_t kMaxFields = 1 << 20;

  // `text` must outlive the reader.
  CsvReader(absl::string_view text, CsvSyntax syntax)
      : left_(text),
        at_end_(true),
        delimiter_(syntax.delimiter),
        quote_(syntax.quote),
        comment_(std::move(syntax.comment)) {}
  CsvReader(Source source, CsvSyntax syntax)
      : source_(std::move(source)),
        at_end_(false),
        delimiter_(syntax.delimiter),
        quote_(syntax.quote),
        comment_(std::move(syntax.comment)) {}
  CsvReader(absl::string_view text, char delimiter) : CsvReader(text, CsvSyntax{.delimiter = delimiter}) {}
  CsvReader(Source source, char delimiter)
      : CsvReader(std::move(source), CsvSyntax{.delimiter = delimiter}) {}

  // Reads the fields of the next row. They are valid until the next call. Returns false at the end.
  // INVALID_ARGUMENT with the row ("row 3: ...") if a quoted field does not end, if text follows its closing
  // quote, or if a limit is exceeded. Returns the error of the source, which is not called again.
  absl::StatusOr<bool> Next(std::vector<absl::string_view>* fields);

  // Returns the number of the last row, from 1.
  int64_t row() const { return row_; }

 private:
  enum class Found { kRow, kEnd, kNeedsMore };

  // Skips blank lines and comments. Returns false if the end of a line has not been read yet.
  bool SkipLines();
  absl::StatusOr<Found> Parse(std::vector<absl::string_view>* fields);
  // Take a field off `left`, which begins with a quote or not. Return false if the field's end has not been
  // read yet.
  bool TakePlain(absl::string_view& left, std::vector<absl::string_view>* fields);
  absl::StatusOr<bool> TakeQuoted(absl::string_view& left, std::vector<absl::string_view>* fields);
  absl::Status Fill();
  absl::Status TooLong() const;
  template <typename... What>
  absl::Status Error(const What&... what) const;

  const Source source_;
  std::string buffer_;
  absl::string_view left_;  // The unread part of the text, or of buffer_ if there is a source.
  bool at_end_;             // The source has no more bytes.
  bool begun_ = false;
  const char delimiter_;
  const char quote_;
  const std::string comment_;
  int64_t row_ = 0;
  int64_t chunk_ = int64_t{1} << 14;  // The bytes that are read at once. Small tables need no large buffer.
  std::deque<std::string> unquoted_;  // The quoted fields of the row.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_READER_H_
