#include "engine/data/formats/csv_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/compressed_file.h"
#include "engine/data/formats/csv_reader.h"

namespace tandem {
namespace {

constexpr int64_t kMaxTableBytes = int64_t{4} << 30;
constexpr size_t kShownColumns = 20;
constexpr size_t kMostShown = 2000;
constexpr size_t kMostViolations = 100;

// Positions of the columns that `wanted` names.
template <typename Names>
std::vector<size_t> Find(const Names& wanted, const char* field, const CsvTable& table,
                         FieldViolations& violations) {
  std::vector<size_t> found;
  if (wanted.empty()) return found;
  std::map<absl::string_view, size_t> positions;
  std::set<absl::string_view> twice;
  for (size_t i = 0; i < table.names.size(); ++i) {
    if (!positions.emplace(table.names[i], i).second) twice.insert(table.names[i]);
  }
  std::vector<bool> taken(table.names.size());
  for (int i = 0; i < wanted.size(); ++i) {
    const std::string path = absl::StrCat("csv.", field, "[", i, "]");
    const auto at = positions.find(wanted[i]);
    if (at == positions.end()) {
      std::vector<std::string> shown(table.names.begin(),
                                     table.names.begin() + std::min(kShownColumns, table.names.size()));
      violations.Add(
          path,
          absl::StrCat("is ", QuotedCell(wanted[i]), ", and the table has no such column; it has ",
                       ToUtf8(absl::Utf8SafeCHexEscape(absl::StrJoin(shown, ", ").substr(0, kMostShown))),
                       table.names.size() > kShownColumns ? ", ..." : ""));
    } else if (twice.count(wanted[i]) != 0) {
      violations.Add(path, absl::StrCat("is ", QuotedCell(wanted[i]),
                                        ", and the table has several columns of "
                                        "this name; give them different ones"));
    } else {
      if (taken[at->second]) violations.Add(path, absl::StrCat("is ", QuotedCell(wanted[i]), " again"));
      taken[at->second] = true;
      found.push_back(at->second);
    }
    // One mistake, made over and over.
    if (violations.violations().size() >= kMostViolations) break;
  }
  return found;
}

// Those that the source names, or else the last one as the target and the others as features.
absl::Status ChooseColumns(const v1::CsvSource& source, CsvTable& table) {
  FieldViolations violations;
  table.targets = Find(source.target_columns(), "target_columns", table, violations);
  if (source.target_columns().empty()) table.targets = {table.names.size() - 1};
  table.features = Find(source.feature_columns(), "feature_columns", table, violations);
  std::vector<bool> is_target(table.names.size());
  for (const size_t column : table.targets) is_target[column] = true;
  if (source.feature_columns().empty()) {
    for (size_t column = 0; column < table.names.size(); ++column) {
      if (!is_target[column]) table.features.push_back(column);
    }
    if (violations.empty() && table.features.empty()) {
      violations.Add("csv.feature_columns", "leave nothing: every column of the table is a target");
    }
  } else if (violations.empty()) {
    for (size_t i = 0; i < table.features.size(); ++i) {
      if (!is_target[table.features[i]]) continue;
      violations.Add(absl::StrCat("csv.feature_columns[", i, "]"),
                     absl::StrCat("is ", QuotedCell(table.names[table.features[i]]), ", which is a target"));
    }
  }
  return violations.ToStatus();
}

bool HasHeader(const v1::CsvSource& source) { return !source.has_header() || source.header(); }

// What columns are called, by the fields of the first row.
std::vector<std::string> NamesOf(const std::vector<absl::string_view>& fields, bool header) {
  std::vector<std::string> names;
  for (size_t i = 0; i < fields.size(); ++i) {
    names.push_back(header ? std::string(absl::StripAsciiWhitespace(fields[i])) : absl::StrCat(i));
  }
  return names;
}

absl::Status CheckColumns(const CsvTable& table, const CsvTable& like) {
  if (table.names == like.names) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(table.path, " has other columns than ", like.path, ": it has ", table.names.size(), ", ",
                   QuotedCell(absl::StrJoin(table.names, ", ")), ", in place of ", like.names.size(), ", ",
                   QuotedCell(absl::StrJoin(like.names, ", "))));
}

absl::Status CheckFields(const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields) {
  if (fields.size() == table.names.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      table.path, ": row ", row, " has ", fields.size(), " field", fields.size() == 1 ? "" : "s",
      ", but the table has ", table.names.size(), " columns",
      fields.size() < table.names.size()
          ? absl::StrCat("; column ", QuotedCell(table.names[fields.size()]), " is the first that is missing")
          : ""));
}

// The rows of a file.
class Rows {
 public:
  static absl::StatusOr<std::unique_ptr<Rows>> Open(const v1::CsvSource& source, const std::string& path) {
    TANDEM_ASSIGN_OR_RETURN(const char delimiter, CsvDelimiter(source));
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<CompressedFile> file, CompressedFile::Open(path));
    // Of two characters at least, a cell and what is after it, a sample has four bytes.
    const int64_t most = CompressedFile::MostInMemory(kMaxTableBytes, 3);
    TANDEM_RETURN_IF_ERROR(file->CheckPlainLength(most));
    return std::unique_ptr<Rows>(new Rows(std::move(file), most, delimiter));
  }
  // As CsvReader.
  absl::StatusOr<bool> Next() {
    absl::StatusOr<bool> more = reader_.Next(&fields_);
    if (more.ok() || has_failed_) return more;
    return absl::InvalidArgumentError(absl::StrCat(file_->path(), ": ", more.status().message()));
  }
  const std::vector<absl::string_view>& fields() const { return fields_; }
  int64_t row() const { return reader_.row(); }
  absl::Status Error(const std::string& what) const { return file_->Error(what); }

 private:
  Rows(std::unique_ptr<CompressedFile> file, int64_t most, char delimiter)
      : file_(std::move(file)),
        most_(most),
        reader_([this](char* data, int64_t size) { return Read(data, size); }, delimiter) {}

  absl::StatusOr<int64_t> Read(char* data, int64_t size) {
    absl::StatusOr<int64_t> count = file_->Read(data, size);
    if (count.ok() && (bytes_ += *count) > most_) count = file_->TooLong(most_);
    // It names the file itself.
    has_failed_ = !count.ok();
    return count;
  }

  const std::unique_ptr<CompressedFile> file_;
  const int64_t most_;
  int64_t bytes_ = 0;
  bool has_failed_ = false;
  CsvReader reader_;
  std::vector<absl::string_view> fields_;
};

}  // namespace

std::string QuotedCell(absl::string_view text) {
  return absl::StrCat("'", ToUtf8(absl::Utf8SafeCHexEscape(text.substr(0, 60))),
                      text.size() > 60 ? "..." : "", "'");
}

bool ParseCsvNumber(absl::string_view text, double* number) {
  text = absl::StripAsciiWhitespace(text);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const absl::from_chars_result result = absl::from_chars(text.data(), text.data() + text.size(), *number);
  return !text.empty() && result.ec == std::errc() && result.ptr == text.data() + text.size() &&
         std::abs(*number) <= std::numeric_limits<float>::max();
}

std::string CsvPlace(const CsvTable& table, int64_t row, size_t column) {
  return absl::StrCat(table.path, ": row ", row, ", column ", QuotedCell(table.names[column]));
}

absl::StatusOr<char> CsvDelimiter(const v1::CsvSource& source) {
  if (source.delimiter().empty()) return ',';
  if (source.delimiter() == "\\t") return '\t';
  const char delimiter = source.delimiter()[0];
  if (source.delimiter().size() == 1 && delimiter != '"' && delimiter != '\n' && delimiter != '\r') {
    return delimiter;
  }
  return FieldError("csv.delimiter",
                    absl::StrCat("is ", QuotedCell(source.delimiter()), "; it must be one character"));
}

absl::StatusOr<CsvTable> ReadCsvTable(const v1::CsvSource& source, const std::string& path,
                                      const CsvTable* like, UseCsvRow use) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, Rows::Open(source, path));
  const bool header = HasHeader(source);
  TANDEM_ASSIGN_OR_RETURN(bool more, rows->Next());
  if (!more) return rows->Error("has no rows");
  CsvTable table{.path = path, .names = NamesOf(rows->fields(), header), .features = {}, .targets = {}};
  if (like == nullptr) {
    TANDEM_RETURN_IF_ERROR(ChooseColumns(source, table));
  } else {
    TANDEM_RETURN_IF_ERROR(CheckColumns(table, *like));
    table.features = like->features;
    table.targets = like->targets;
  }
  if (header) {
    TANDEM_ASSIGN_OR_RETURN(more, rows->Next());
  }
  while (more) {
    TANDEM_RETURN_IF_ERROR(CheckFields(table, rows->row(), rows->fields()));
    TANDEM_RETURN_IF_ERROR(use(table, rows->row(), rows->fields()));
    if (++table.rows > kMaxSamples) return rows->Error("has more rows than can be read");
    TANDEM_ASSIGN_OR_RETURN(more, rows->Next());
  }
  if (table.rows == 0) return rows->Error("has no rows but the one that names its columns");
  return table;
}

absl::StatusOr<std::vector<std::string>> CsvFeatureNames(const v1::CsvSource& source) {
  if (!HasHeader(source)) return std::vector<std::string>();
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, Rows::Open(source, source.train()));
  TANDEM_ASSIGN_OR_RETURN(const bool any, rows->Next());
  if (!any) return rows->Error("has no row that names its columns");
  CsvTable table{
      .path = source.train(), .names = NamesOf(rows->fields(), true), .features = {}, .targets = {}};
  TANDEM_RETURN_IF_ERROR(ChooseColumns(source, table));
  std::vector<std::string> features;
  for (const size_t column : table.features) features.push_back(table.names[column]);
  const std::set<absl::string_view> different(features.begin(), features.end());
  if (different.size() < features.size()) features.clear();
  return features;
}

}  // namespace tandem
