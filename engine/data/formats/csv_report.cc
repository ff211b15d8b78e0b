#include "engine/data/formats/csv_report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "engine/data/data_names.h"
#include "engine/data/formats/csv_columns.h"
#include "engine/data/formats/csv_table.h"
#include "engine/data/table/column_profile.h"
#include "engine/data/table/table_encoder.h"

namespace tandem {
namespace {

constexpr size_t kMostColumns = 1000;
constexpr size_t kMostDistinct = 100'001;
constexpr int kMostExamples = 5;
constexpr size_t kExampleLength = 40;  // In bytes.

// The cells of a column.
class ReportedColumn {
 public:
  ReportedColumn(const CellRules& rules, v1::ColumnKind wanted) : rules_(rules), profile_(rules, wanted) {}

  void Add(int64_t row, absl::string_view cell) {
    profile_.Add(row, cell);
    cell = absl::StripAsciiWhitespace(cell);
    if (rules_.IsMissing(cell)) return;
    if (hashes_.size() < kMostDistinct && hashes_.insert(absl::HashOf(cell)).second &&
        message_.examples_size() < kMostExamples) {
      const std::string text = NameToUtf8(cell);
      message_.add_examples(ToUtf8(absl::string_view(text).substr(0, kExampleLength)));
    }
    double number = 0;
    if (ParseCsvNumber(cell, rules_.decimal_comma, &number)) {
      if (!has_number_ || number < least_) SetLeast(number, cell);
      if (!has_number_ || number > largest_) SetLargest(number, cell);
      has_number_ = true;
    } else {
      AddDate(cell, /*day_first=*/false, month_first_);
      AddDate(cell, /*day_first=*/true, day_first_);
    }
  }

  v1::TableColumn Finish() {
    message_.set_kind(profile_.Kind());
    message_.set_missing(profile_.missing());
    message_.set_distinct(static_cast<int64_t>(hashes_.size()));
    if (message_.kind() == v1::COLUMN_KIND_NUMBER && has_number_) {
      message_.set_least(least_text_);
      message_.set_largest(largest_text_);
    } else if (message_.kind() == v1::COLUMN_KIND_DATE) {
      const Dates& dates = profile_.day_first() ? day_first_ : month_first_;
      message_.set_least(dates.first);
      message_.set_largest(dates.last);
    }
    return std::move(message_);
  }

 private:
  // The first and the last date of a column.
  struct Dates {
    std::string first;
    std::string last;
  };

  static void AddDate(absl::string_view cell, bool day_first, Dates& dates) {
    const std::optional<TableDate> date = ParseTableDate(cell, day_first);
    if (!date.has_value()) return;
    const std::string text = date->Text();
    if (dates.first.empty() || text < dates.first) dates.first = text;
    if (text > dates.last) dates.last = text;
  }
  void SetLeast(double number, absl::string_view cell) {
    least_ = number;
    least_text_ = std::string(cell.substr(0, kExampleLength));
  }
  void SetLargest(double number, absl::string_view cell) {
    largest_ = number;
    largest_text_ = std::string(cell.substr(0, kExampleLength));
  }

  CellRules rules_;
  ColumnProfile profile_;
  v1::TableColumn message_;
  // Of the different cells. Hashes take little memory, and two of 100,001 are hardly ever equal.
  absl::flat_hash_set<size_t> hashes_;
  bool has_number_ = false;
  double least_ = 0;
  double largest_ = 0;
  std::string least_text_;
  std::string largest_text_;
  // Only all cells show the order of dates such as 05/04/2024.
  Dates month_first_;
  Dates day_first_;
};

// Returns the number of inputs of the feature `name`.
int64_t InputsOfFeature(const DatasetInfo& info, const std::string& name) {
  if (!info.preparation.has_value()) return 1;
  for (const v1::PreparedColumn& column : info.preparation->columns()) {
    if (column.name() == name) return InputsOf(column);
  }
  return 0;
}

}  // namespace

absl::StatusOr<CsvReport> ReportCsv(const v1::DatasetSpec& spec, const DatasetInfo& info) {
  CsvReport report;
  std::vector<ReportedColumn> columns;
  const DataNames none = {.matches_inputs = false, .matches_outputs = false};
  absl::StatusOr<CsvTable> read =
      ReadCsvTable(spec.csv(), spec.csv().train(), none,
                   [&](const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields) {
                     const size_t count = std::min(kMostColumns, fields.size());
                     for (size_t i = columns.size(); i < count; ++i) {
                       columns.emplace_back(table.rules, WantedKind(spec.csv(), table.names[i]));
                     }
                     for (size_t i = 0; i < count; ++i) {
                       report.is_utf8 = report.is_utf8 && IsUtf8(fields[i]);
                       columns[i].Add(row, fields[i]);
                     }
                     return absl::OkStatus();
                   });
  TANDEM_RETURN_IF_ERROR(read.status());
  report.has_quotes = read->format.has_quotes;
  for (size_t i = 0; i < columns.size(); ++i) {
    v1::TableColumn column = columns[i].Finish();
    column.set_name(read->names[i]);
    const auto is_among = [i](const std::vector<size_t>& positions) {
      return std::find(positions.begin(), positions.end(), i) != positions.end();
    };
    column.set_target(is_among(read->targets));
    if (column.target()) {
      column.set_kind(info.target_type == TargetKind::kClass ? v1::COLUMN_KIND_CATEGORY
                                                             : v1::COLUMN_KIND_NUMBER);
    } else if (is_among(read->features)) {
      column.set_inputs(InputsOfFeature(info, column.name()));
    } else {
      column.set_kind(v1::COLUMN_KIND_IGNORED);
    }
    report.columns.push_back(std::move(column));
  }
  return report;
}

}  // namespace tandem
