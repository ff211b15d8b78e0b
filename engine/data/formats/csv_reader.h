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

// Reads the rows of a table in comma-separated values (RFC 4180): fields in double quotes may hold the
// delimiter, line ends and, doubled, quotes. Lines end in LF or CRLF; blank ones are passed over, and so is a
// byte order mark. It holds a row, and somewhat more than that, at a time. Not thread-safe.
class CsvReader {
 public:
  // Brings up to `size` bytes of a table; fewer only at its end.
  using Source = std::function<absl::StatusOr<int64_t>(char* data, int64_t size)>;

  // Of what is read piece by piece, a row may have so many bytes; of any, so many fields.
  static constexpr int64_t kMaxRowBytes = int64_t{16} << 20;
  static constexpr size_t kMaxFields = 1 << 20;

  // `text` outlives it.
  CsvReader(absl::string_view text, char delimiter) : left_(text), at_end_(true), delimiter_(delimiter) {}
  CsvReader(Source source, char delimiter)
      : source_(std::move(source)), at_end_(false), delimiter_(delimiter) {}

  // Reads the next row's fields, which stay until the next call; false at the end. INVALID_ARGUMENT with the
  // row ("row 3: ...") where a quoted field does not end, more than a delimiter follows it, or there is more
  // than may be; or as the source fails, after which it is not called again.
  absl::StatusOr<bool> Next(std::vector<absl::string_view>* fields);

  // The number of the row that was read last, from 1.
  int64_t row() const { return row_; }

 private:
  enum class Found { kRow, kEnd, kNeedsMore };

  absl::StatusOr<Found> Parse(std::vector<absl::string_view>* fields);
  // Takes a field off `left`. False where its end has not come yet.
  absl::StatusOr<bool> TakeField(absl::string_view& left, std::vector<absl::string_view>* fields);
  absl::StatusOr<bool> TakeQuoted(absl::string_view& left, std::vector<absl::string_view>* fields);
  absl::Status Fill();
  absl::Status TooLong() const;
  template <typename... What>
  absl::Status Error(const What&... what) const;

  const Source source_;
  std::string buffer_;
  absl::string_view left_;  // What was not taken yet, of the buffer where there is a source.
  bool at_end_;             // Nothing follows that.
  bool begun_ = false;
  const char delimiter_;
  int64_t row_ = 0;
  std::deque<std::string> unquoted_;  // The row's fields that are quoted.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_READER_H_
