#ifndef TANDEM_ENGINE_DATA_FORMATS_CSV_FORMAT_H_
#define TANDEM_ENGINE_DATA_FORMATS_CSV_FORMAT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/csv_reader.h"
#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/table.pb.h"

namespace tandem {

// The form of a table's file.
struct CsvFormat {
  CsvSyntax syntax = {};
  // Whether the first row is a line of Excel such as "sep=;", not a row of cells.
  bool has_separator_row = false;
  bool header = true;
  bool decimal_comma = false;
  v1::TextEncoding encoding = v1::TEXT_ENCODING_UTF8;
  bool has_quotes = false;  // The text at the beginning has a quote.

  // Returns true if no cell of the table can have a decimal comma: commas split each row into exactly `cells`
  // cells, and no cell is quoted.
  bool RulesOutDecimalCommas(size_t cells) const {
    return cells > 1 && syntax.delimiter == ',' && !has_quotes;
  }

  v1::TableFormat ToMessage() const;
};

// Converts the bytes of a file to UTF-8. Not thread-safe.
class TextDecoder {
 public:
  // UTF-8 is left as it is.
  explicit TextDecoder(v1::TextEncoding encoding);
  ~TextDecoder();
  TextDecoder(const TextDecoder&) = delete;
  TextDecoder& operator=(const TextDecoder&) = delete;

  // Appends the text of `bytes` to `text`, and keeps the beginning of a character for the next call.
  // INVALID_ARGUMENT if the bytes are not in the encoding.
  absl::Status Decode(absl::string_view bytes, std::string* text);
  // INVALID_ARGUMENT if the bytes ended within a character.
  absl::Status Finish() const;

 private:
  void* converter_ = nullptr;  // iconv_t, or null.
  const char* name_ = "";
  std::string rest_;
};

// Returns the encoding that `source` gives, or finds it in the first bytes of a file: UTF-16 by its byte
// order mark, otherwise UTF-8. Text that is not UTF-8 is reported as Latin-1, if `source` gives no encoding.
v1::TextEncoding EncodingOf(const v1::CsvSource& source, absl::string_view bytes);

// Finds the form of a table from its beginning, in UTF-8. What `source` gives is kept. `is_whole`: `text` is
// the whole table. INVALID_ARGUMENT with the wrong fields of the DatasetSpec ("csv.delimiter").
absl::StatusOr<CsvFormat> FindCsvFormat(const v1::CsvSource& source, absl::string_view text, bool is_whole);

// Checks the fields of `source` that give the form. INVALID_ARGUMENT with the wrong fields.
absl::Status CheckCsvFormat(const v1::CsvSource& source);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_FORMAT_H_
