#include "engine/data/formats/csv_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tandem {

CsvReader::CsvReader(absl::string_view text, char delimiter) : left_(text), delimiter_(delimiter) {
  absl::ConsumePrefix(&left_, "\xEF\xBB\xBF");
}

absl::StatusOr<bool> CsvReader::Next(std::vector<absl::string_view>* fields) {
  fields->clear();
  while (absl::ConsumePrefix(&left_, "\n") || absl::ConsumePrefix(&left_, "\r\n")) {
  }
  if (left_.empty()) return false;
  ++row_;
  unquoted_.clear();
  const char special[] = {delimiter_, '\n'};
  while (true) {
    if (!left_.empty() && left_.front() == '"') {
      std::string field;
      size_t at = 1;
      while (true) {
        const size_t quote = left_.find('"', at);
        if (quote == absl::string_view::npos) {
          return absl::InvalidArgumentError(absl::StrCat("row ", row_, ": field ", fields->size() + 1,
                                                         " begins with a quote that is not closed"));
        }
        absl::StrAppend(&field, left_.substr(at, quote - at));
        at = quote + 1;
        if (at >= left_.size() || left_[at] != '"') break;
        field.push_back('"');
        ++at;
      }
      left_.remove_prefix(at);
      unquoted_.push_back(std::move(field));
      fields->push_back(unquoted_.back());
      if (!left_.empty() && left_.front() != delimiter_ && left_.front() != '\n' &&
          left_.substr(0, 2) != "\r\n") {
        return absl::InvalidArgumentError(
            absl::StrCat("row ", row_, ": field ", fields->size(), " goes on after its closing quote"));
      }
      absl::ConsumePrefix(&left_, "\r");
    } else {
      size_t end = left_.find_first_of(absl::string_view(special, 2));
      if (end == absl::string_view::npos) end = left_.size();
      absl::string_view field = left_.substr(0, end);
      left_.remove_prefix(end);
      if (left_.empty() || left_.front() == '\n') absl::ConsumeSuffix(&field, "\r");
      fields->push_back(field);
    }
    if (left_.empty()) return true;
    const bool line_ends = left_.front() == '\n';
    left_.remove_prefix(1);
    if (line_ends) return true;
  }
}

}  // namespace tandem
