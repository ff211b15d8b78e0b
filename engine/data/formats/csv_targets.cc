#include "engine/data/formats/csv_targets.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/status_macros.h"
#include "engine/data/data_names.h"

namespace tandem {
namespace {

// The limits of class names: their number and their bytes. A column beyond them names no classes.
constexpr size_t kMaxClassNames = 1 << 20;
constexpr size_t kMaxNamesBytes = size_t{64} << 20;
// A network's first outputs are near 0. Values of this size take many steps.
constexpr double kLargeValue = 100;
constexpr double kLongNumber = 1e9;  // Messages show powers of ten from here.
constexpr absl::string_view kNamesClasses = ", or give csv.targets: class if the column names classes";

// Parses a class that is a number, below `classes` unless that is 0.
absl::StatusOr<int32_t> ClassNumber(const CsvTable& table, int64_t row, size_t column, absl::string_view text,
                                    int64_t classes) {
  double number = 0;
  if (!ParseCsvNumber(text, table.rules.decimal_comma, &number) || number != std::floor(number) ||
      number < 0 || number >= std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(CsvPlace(table, row, column), " is ", QuotedCell(text),
                                                   "; classes must be integers from 0, or text"));
  }
  if (classes > 0 && number >= static_cast<double>(classes)) {
    return absl::InvalidArgumentError(absl::StrCat(CsvPlace(table, row, column), " is class ", text,
                                                   ", outside the ", classes, " classes (0 to ", classes - 1,
                                                   ")"));
  }
  return static_cast<int32_t>(number);
}

absl::Status EmptyTarget(const CsvTable& table, int64_t row, size_t column) {
  const bool is_unnamed = table.names[column].empty() && column + 1 == table.names.size();
  return absl::InvalidArgumentError(absl::StrCat(
      CsvPlace(table, row, column), " is empty, but it is a target; ",
      is_unnamed
          ? "the first row ends with a delimiter, so that the last column has no name: remove the delimiter "
            "at the end of each row, or name the target in csv.target_columns"
          : "fill it in, or remove the row"));
}

}  // namespace

absl::StatusOr<double> CsvNumber(const CsvTable& table, int64_t row, size_t column, absl::string_view text,
                                 absl::string_view advice) {
  double number = 0;
  if (ParseCsvNumber(text, table.rules.decimal_comma, &number)) return number;
  return absl::InvalidArgumentError(
      absl::StrCat(CsvPlace(table, row, column),
                   StripCell(text).empty() ? " is empty" : absl::StrCat(" is ", QuotedCell(text)), "; ",
                   NumberRule(text, table.rules.decimal_comma), advice));
}

void TrainingTargets::Add(const CsvTable& table, int64_t row, size_t column, absl::string_view text) {
  text = StripCell(text);
  if (text.empty()) {
    if (empty_status_.ok()) empty_status_ = EmptyTarget(table, row, column);
    return;
  }
  double number = 0;
  Seen& seen = ParseCsvNumber(text, table.rules.decimal_comma, &number) ? numbers_ : texts_;
  if (seen.count++ == 0) seen.place = absl::StrCat(CsvPlace(table, row, column), " is ", QuotedCell(text));
  if (&seen == &numbers_) sum_of_squares_ += number * number;
  const absl::string_view advice = DecimalCommaAdvice(text, table.rules.decimal_comma);
  if (&seen == &texts_ && value_status_.ok()) {
    value_status_ = CsvNumber(table, row, column, text, advice).status();
  }
  if (marks_status_.ok() && HasThousandsMarks(text, table.rules.decimal_comma)) {
    marks_status_ = CsvNumber(table, row, column, text, absl::StrCat(advice, kNamesClasses)).status();
  }
  const bool is_known = !known_.empty() && (known_.contains(text) || known_.contains(NameToUtf8(text)));
  if (is_known) {
    knows_any_ = true;
  } else if (known_status_.ok() && !known_.empty()) {
    known_status_ = absl::InvalidArgumentError(absl::StrCat(
        CsvPlace(table, row, column), " is ", QuotedCell(text),
        ", a class that the model does not know; leave such rows out, or correct what is misspelt"));
  }
  if (number_status_.ok()) {
    const absl::StatusOr<int32_t> label = ClassNumber(table, row, column, text, classes_);
    number_status_ = label.status();
    if (label.ok()) {
      largest_ = std::max(largest_, *label);
      smallest_ = std::min(smallest_, *label);
    }
  }
  const bool is_name = &seen == &texts_ || are_classes_ || is_known;
  if (!keeps_names_ || !is_name || !names_.emplace(text).second) return;
  names_bytes_ += sizeof(std::string) + text.size();
  if (names_.size() <= kMaxClassNames && names_bytes_ <= kMaxNamesBytes) return;
  keeps_names_ = false;
  names_ = {};
}

absl::Status TrainingTargets::mixed_status() const {
  if (!are_mixed()) return absl::OkStatus();
  const bool is_text = texts_.count <= numbers_.count;
  const Seen& fewer = is_text ? texts_ : numbers_;
  const Seen& others = is_text ? numbers_ : texts_;
  return absl::InvalidArgumentError(
      absl::StrCat(fewer.place, is_text ? ", which is no number" : ", which is a number",
                   ", but the column holds ", is_text ? "numbers" : "text", " in ", others.count,
                   others.count == 1 ? " other row" : " other rows", "; correct it", kNamesClasses));
}

std::string TrainingTargets::LabelsNotice(const CsvTable& table) const {
  if (!are_classes_ || !keeps_names_ || !number_status_.ok() || one_label()) return "";
  // 3 and 3.0 are the same label.
  absl::flat_hash_set<double> labels;
  for (const std::string& name : names_) {
    double label = 0;
    if (ParseCsvNumber(name, table.rules.decimal_comma, &label)) labels.insert(label);
  }
  const int64_t classes = int64_t{1} + largest_;
  const int64_t empty = classes - static_cast<int64_t>(labels.size());
  if (smallest_ == 0 && empty * 2 <= classes) return "";
  return absl::StrCat("The labels of the column ", QuotedCell(table.names[table.targets[0]]),
                      " are whole numbers from ", smallest_, " to ", largest_, ", so the network has ",
                      classes, " classes, and ", empty, empty == 1 ? " of them has" : " of them have",
                      " no sample; number the labels from 0, or write them as text.");
}

std::string TrainingTargets::ScaleNotice(const CsvTable& table) const {
  if (numbers_.count == 0) return "";
  const double size = std::sqrt(sum_of_squares_ / static_cast<double>(numbers_.count));
  if (!(size > kLargeValue)) return "";
  // One digit says enough.
  const double unit = std::pow(10, std::floor(std::log10(size)));
  const double rounded = std::round(size / unit) * unit;
  return absl::StrCat(
      "The target ", QuotedCell(table.names[table.targets[0]]), " has values around ",
      size < kLongNumber ? absl::StrFormat("%.0f", rounded) : absl::StrFormat("%.0e", size),
      ", and networks reach such values slowly; csv.target_scaling: standard scales them while "
      "training, and results keep the table's scale.");
}

absl::StatusOr<std::vector<std::string>> TrainingTargets::Names(const CsvTable& table) const {
  if (!keeps_names_) {
    return absl::InvalidArgumentError(
        absl::StrCat(table.path, ": column ", QuotedCell(table.names[table.targets[0]]), " has more than ",
                     kMaxClassNames, " different texts, or texts too long, to be names of classes"));
  }
  std::vector<std::string> names;
  for (const std::string& name : names_) names.push_back(NameToUtf8(name));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (!number_status_.ok()) return names;
  const auto number = [&](const std::string& name) {
    double value = 0;
    ParseCsvNumber(name, table.rules.decimal_comma, &value);
    return value;
  };
  std::stable_sort(names.begin(), names.end(), [&](const std::string& left, const std::string& right) {
    return number(left) < number(right);
  });
  return names;
}

absl::Status TargetReader::Read(const CsvTable& table, int64_t row, size_t column, absl::string_view text,
                                std::vector<uint8_t>* bytes) const {
  text = StripCell(text);
  if (text.empty()) return EmptyTarget(table, row, column);
  if (info_.target_type == TargetKind::kValues) {
    TANDEM_ASSIGN_OR_RETURN(double value, CsvNumber(table, row, column, text, ""));
    if (info_.preparation.has_value() && info_.preparation->target_deviation() > 0) {
      value = (value - info_.preparation->target_mean()) / info_.preparation->target_deviation();
    }
    AppendBytes(static_cast<float>(value), bytes);
    return absl::OkStatus();
  }
  if (!numbers_.empty()) {
    auto found = numbers_.find(text);
    if (found == numbers_.end()) found = numbers_.find(NameToUtf8(text));
    if (found == numbers_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          CsvPlace(table, row, column), " is ", QuotedCell(text), ", a class that the training table",
          " does not have; the classes are ", ListNames(info_.class_names)));
    }
    AppendBytes(found->second, bytes);
    return absl::OkStatus();
  }
  TANDEM_ASSIGN_OR_RETURN(const int32_t number, ClassNumber(table, row, column, text, info_.classes));
  AppendBytes(number, bytes);
  return absl::OkStatus();
}

}  // namespace tandem
