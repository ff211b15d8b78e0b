#include "engine/data/table/table_encoder.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/data/data_names.h"

namespace tandem {
namespace {

constexpr int64_t kMaxColumnInputs = 1 << 20;
// Uniform numbers from -kQuantileEnd to kQuantileEnd have the standard deviation 1.
constexpr double kQuantileEnd = 1.7320508075688772;

// Returns the number's place among the quantiles, from 0 to 1. A number that several quantiles equal has
// their middle.
double PlaceAmong(const v1::PreparedNumber& number, double value) {
  const auto& quantiles = number.quantiles();
  const auto low = std::lower_bound(quantiles.begin(), quantiles.end(), value);
  const auto high = std::upper_bound(low, quantiles.end(), value);
  const double last = quantiles.size() - 1;
  if (low == quantiles.end()) return 1;
  if (high == quantiles.begin()) return 0;
  if (low != high) {
    return (static_cast<double>(low - quantiles.begin()) +
            static_cast<double>(high - quantiles.begin() - 1)) /
           2 / last;
  }
  const double below = *(low - 1);
  return (static_cast<double>(low - quantiles.begin()) - 1 + (value - below) / (*low - below)) / last;
}

double InputOf(const v1::PreparedNumber& number, double value) {
  if (number.quantiles_size() > 1) return (2 * PlaceAmong(number, value) - 1) * kQuantileEnd;
  return (value - number.mean()) / number.deviation();
}

bool AreFinite(const v1::PreparedNumber& number) {
  const auto is_finite = [](double value) { return std::isfinite(value); };
  return is_finite(number.fill()) && is_finite(number.mean()) && is_finite(number.deviation()) &&
         number.deviation() > 0 &&
         std::all_of(number.quantiles().begin(), number.quantiles().end(), is_finite) &&
         std::is_sorted(number.quantiles().begin(), number.quantiles().end());
}

// Returns the fault of a prepared column, or "".
std::string FaultOf(const v1::PreparedColumn& column) {
  switch (column.kind()) {
    case v1::COLUMN_KIND_NUMBER:
      if (column.numbers_size() != 1) return "has no number";
      break;
    case v1::COLUMN_KIND_DATE:
      if (column.numbers_size() < kDateParts - 1 || column.numbers_size() > kDateParts) {
        return "has not the parts of a date";
      }
      break;
    case v1::COLUMN_KIND_CATEGORY:
      if (column.category_inputs() < column.categories_size() ||
          column.category_inputs() > kMaxColumnInputs) {
        return "has no inputs for its categories";
      }
      break;
    default:
      return "has no kind";
  }
  return std::all_of(column.numbers().begin(), column.numbers().end(), AreFinite)
             ? ""
             : "has a scale that is not finite";
}

}  // namespace

int64_t InputsOf(const v1::PreparedColumn& column) {
  const int64_t inputs =
      column.kind() == v1::COLUMN_KIND_CATEGORY ? column.category_inputs() + 1 : column.numbers_size();
  return inputs + (column.missing_indicator() ? 1 : 0);
}

std::vector<v1::EmbeddedColumn> CategoryColumnsOf(const v1::TablePreparation& preparation) {
  std::vector<v1::EmbeddedColumn> columns;
  int64_t first = 0;
  for (const v1::PreparedColumn& column : preparation.columns()) {
    const int64_t inputs = InputsOf(column);
    if (column.kind() == v1::COLUMN_KIND_CATEGORY) {
      v1::EmbeddedColumn& embedded = columns.emplace_back();
      embedded.set_name(column.name());
      embedded.set_first_input(first);
      embedded.set_inputs(inputs);
    }
    first += inputs;
  }
  return columns;
}

std::array<double, kDateParts> DateParts(const TableDate& date) {
  return {static_cast<double>(date.year), static_cast<double>(date.month), static_cast<double>(date.day),
          static_cast<double>(date.Weekday()), date.hour};
}

absl::Status CheckPreparation(const v1::TablePreparation& preparation) {
  for (const v1::PreparedColumn& column : preparation.columns()) {
    const std::string fault = FaultOf(column);
    if (fault.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the prepared column ", QuotedCell(column.name()), " ", fault));
  }
  const double deviation = preparation.target_deviation();
  if (std::isfinite(preparation.target_mean()) && std::isfinite(deviation) && deviation >= 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("the scale of the target is not finite");
}

TableEncoder::TableEncoder(v1::TablePreparation preparation) : preparation_(std::move(preparation)) {
  rules_.decimal_comma = preparation_.decimal_comma();
  rules_.missing_texts.insert(preparation_.missing_texts().begin(), preparation_.missing_texts().end());
  for (const v1::PreparedColumn& prepared : preparation_.columns()) {
    Column& column = columns_.emplace_back();
    column.inputs = InputsOf(prepared);
    inputs_ += column.inputs;
    for (int i = 0; i < prepared.categories_size(); ++i) column.categories.emplace(prepared.categories(i), i);
  }
}

absl::Status TableEncoder::Encode(size_t column, absl::string_view cell, std::vector<float>* inputs) const {
  const v1::PreparedColumn& prepared = preparation_.columns(static_cast<int>(column));
  cell = StripCell(cell);
  const bool missing = rules_.IsMissing(cell);
  if (missing && prepared.refuse_missing()) {
    return absl::InvalidArgumentError(absl::StrCat(
        cell.empty() ? "is empty" : absl::StrCat("is ", QuotedCell(cell)),
        ", but missing cells are refused; fill the cell in, or give csv.missing or the column's missing"));
  }
  if (prepared.kind() == v1::COLUMN_KIND_CATEGORY) {
    EncodeCategory(column, cell, missing, inputs);
  } else {
    TANDEM_RETURN_IF_ERROR(EncodeNumbers(prepared, cell, missing, inputs));
  }
  if (prepared.missing_indicator()) inputs->push_back(missing ? 1 : 0);
  return absl::OkStatus();
}

bool TableEncoder::IsUnknownCategory(size_t column, absl::string_view cell) const {
  cell = StripCell(cell);
  return preparation_.columns(static_cast<int>(column)).kind() == v1::COLUMN_KIND_CATEGORY &&
         !rules_.IsMissing(cell) && !columns_[column].categories.contains(NameToUtf8(cell));
}

void TableEncoder::EncodeCategory(size_t column, absl::string_view cell, bool missing,
                                  std::vector<float>* inputs) const {
  const v1::PreparedColumn& prepared = preparation_.columns(static_cast<int>(column));
  const size_t begin = inputs->size();
  inputs->resize(begin + prepared.category_inputs() + 1);
  // Only the indicator tells of a missing cell, if the column has an indicator.
  if (missing && prepared.fill().empty()) return;
  const auto found = columns_[column].categories.find(missing ? prepared.fill() : NameToUtf8(cell));
  const bool is_known = found != columns_[column].categories.end();
  (*inputs)[begin + (is_known ? found->second : prepared.category_inputs())] = 1;
}

absl::Status TableEncoder::EncodeNumbers(const v1::PreparedColumn& column, absl::string_view cell,
                                         bool missing, std::vector<float>* inputs) const {
  std::array<double, kDateParts> values = {};
  if (missing) {
    for (int i = 0; i < column.numbers_size(); ++i) values[i] = column.numbers(i).fill();
  } else if (column.kind() == v1::COLUMN_KIND_NUMBER) {
    if (!ParseCsvNumber(cell, rules_.decimal_comma, values.data())) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", QuotedCell(cell), "; ", NumberRule(cell, rules_.decimal_comma)));
    }
  } else {
    const std::optional<TableDate> date = ParseTableDate(cell, column.day_first());
    if (!date.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", QuotedCell(cell), "; it must be a date such as 2024-05-31"));
    }
    values = DateParts(*date);
  }
  for (int i = 0; i < column.numbers_size(); ++i) {
    const auto input = static_cast<float>(InputOf(column.numbers(i), values[i]));
    if (!std::isfinite(input)) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", QuotedCell(cell), ", too far from the training rows' numbers to be scaled"));
    }
    inputs->push_back(input);
  }
  return absl::OkStatus();
}

}  // namespace tandem
