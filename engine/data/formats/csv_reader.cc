#include "engine/data/formats/csv_reader.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr int64_t kMaxChunk = int64_t{1} << 18;

}  // namespace

template <typename... What>
absl::Status CsvReader::Error(const What&... what) const {
  return absl::InvalidArgumentError(absl::StrCat("row ", row_ + 1, what...));
}

absl::Status CsvReader::TooLong() const {
  return Error(" is longer than the ", kMaxRowBytes, " bytes that can be read");
}

absl::StatusOr<bool> CsvReader::Next(std::vector<absl::string_view>* fields) {
  while (true) {
    TANDEM_ASSIGN_OR_RETURN(const Found found, Parse(fields));
    switch (found) {
      case Found::kRow:
        ++row_;
        return true;
      case Found::kEnd:
        return false;
      case Found::kNeedsMore:
        TANDEM_RETURN_IF_ERROR(Fill());
    }
  }
}

absl::Status CsvReader::Fill() {
  const auto rest = static_cast<int64_t>(left_.size());
  if (rest > kMaxRowBytes) return TooLong();
  buffer_.erase(0, left_.data() == nullptr ? 0 : left_.data() - buffer_.data());
  buffer_.resize(rest);
  // Doubles the buffer, because a long row is parsed from its beginning each time.
  const int64_t wanted = std::max(chunk_, std::min(rest, kMaxRowBytes + 1 - rest));
  chunk_ = std::min(4 * chunk_, kMaxChunk);
  buffer_.resize(rest + wanted);
  TANDEM_ASSIGN_OR_RETURN(const int64_t count, source_(buffer_.data() + rest, wanted));
  buffer_.resize(rest + count);
  left_ = buffer_;
  at_end_ = count < wanted;
  return absl::OkStatus();
}

bool CsvReader::SkipLines() {
  while (true) {
    if (absl::ConsumePrefix(&left_, "\n") || absl::ConsumePrefix(&left_, "\r\n")) continue;
    if (comment_.empty()) return true;
    if (!at_end_ && left_.size() < comment_.size()) return false;
    if (!absl::StartsWith(left_, comment_)) return true;
    const size_t end = left_.find('\n');
    if (end == absl::string_view::npos && !at_end_) return false;
    left_.remove_prefix(std::min(end, left_.size()));
  }
}

bool CsvReader::TakePlain(absl::string_view& left, std::vector<absl::string_view>* fields) {
  const char* const begin = left.data();
  const char* const limit = begin + left.size();
  const char* at = begin;
  while (at != limit && *at != delimiter_ && *at != '\n') ++at;
  if (at == limit && !at_end_) return false;
  const auto end = static_cast<size_t>(at - begin);
  absl::string_view field = left.substr(0, end);
  left.remove_prefix(end);
  if (left.empty() || left.front() == '\n') absl::ConsumeSuffix(&field, "\r");
  fields->push_back(field);
  return true;
}

absl::StatusOr<CsvReader::Found> CsvReader::Parse(std::vector<absl::string_view>* fields) {
  fields->clear();
  unquoted_.clear();
  if (!begun_) {
    if (left_.size() < 3 && !at_end_) return Found::kNeedsMore;
    absl::ConsumePrefix(&left_, "\xEF\xBB\xBF");
    begun_ = true;
  }
  if (!SkipLines()) return Found::kNeedsMore;
  if (left_.empty()) return at_end_ ? Found::kEnd : Found::kNeedsMore;
  for (absl::string_view left = left_;;) {
    if (left.empty() || left.front() != quote_) {
      if (!TakePlain(left, fields)) return Found::kNeedsMore;
    } else {
      TANDEM_ASSIGN_OR_RETURN(const bool whole, TakeQuoted(left, fields));
      if (!whole) return Found::kNeedsMore;
    }
    if (fields->size() > kMaxFields)
      return Error(" has more than the ", kMaxFields, " fields that can be read");
    const bool ends = left.empty() || left.front() == '\n';
    if (!left.empty()) left.remove_prefix(1);
    if (!ends) continue;
    if (source_ != nullptr && left.data() - left_.data() > kMaxRowBytes) return TooLong();
    left_ = left;
    return Found::kRow;
  }
}

absl::StatusOr<bool> CsvReader::TakeQuoted(absl::string_view& left, std::vector<absl::string_view>* fields) {
  std::string field;
  size_t at = 1;
  while (true) {
    const size_t quote = left.find(quote_, at);
    if (quote == absl::string_view::npos) {
      if (!at_end_) return false;
      return Error(": field ", fields->size() + 1, " begins with a quote that is not closed");
    }
    absl::StrAppend(&field, left.substr(at, quote - at));
    at = quote + 1;
    if (at >= left.size() || left[at] != quote_) break;
    field.push_back(quote_);
    ++at;
  }
  // The next two characters decide whether the field has ended. A line end may have two.
  if (left.size() - at < 2 && !at_end_) return false;
  left.remove_prefix(at);
  unquoted_.push_back(std::move(field));
  fields->push_back(unquoted_.back());
  if (!left.empty() && left.front() != delimiter_ && left.front() != '\n' &&
      !absl::StartsWith(left, "\r\n")) {
    return Error(": field ", fields->size(), " goes on after its closing quote");
  }
  absl::ConsumePrefix(&left, "\r");
  return true;
}

}  // namespace tandem
