#include "engine/data/table/table_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "engine/base/status_macros.h"
#include "engine/data/data_names.h"
#include "engine/data/table/table_encoder.h"

namespace tandem {
namespace {

// A column has at most this many quantiles.
constexpr size_t kMostQuantiles = 1001;

int NumbersOf(const ColumnPlan& plan) {
  if (plan.kind == v1::COLUMN_KIND_CATEGORY) return 0;
  if (plan.kind == v1::COLUMN_KIND_NUMBER) return 1;
  return plan.has_time ? kDateParts : kDateParts - 1;
}

// `sorted` is not empty. Returns the number at the place `part` / `parts` in [0, 1], interpolated. A place
// that a number has exactly gives this number.
double Quantile(const std::vector<double>& sorted, size_t part, size_t parts) {
  const size_t at = part * (sorted.size() - 1);
  const size_t below = at / parts, rest = at % parts;
  if (rest == 0) return sorted[below];
  return sorted[below] +
         (sorted[below + 1] - sorted[below]) * (static_cast<double>(rest) / static_cast<double>(parts));
}

// `numbers` is not empty, and is reordered. Returns Quantile of the sorted numbers at 1 / 2.
double Median(std::vector<double>& numbers) {
  const auto middle = numbers.begin() + static_cast<int64_t>((numbers.size() - 1) / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  if (numbers.size() % 2 == 1) return *middle;
  return Quantile({*middle, *std::min_element(middle + 1, numbers.end())}, 1, 2);
}

// `sorted` is not empty. Returns the most frequent value. Of several such values, the smallest.
template <typename Value>
Value MostFrequent(const std::vector<Value>& sorted) {
  Value best = sorted[0];
  size_t most = 0;
  for (size_t begin = 0; begin < sorted.size();) {
    size_t end = begin;
    while (end < sorted.size() && sorted[end] == sorted[begin]) ++end;
    if (end - begin > most) {
      most = end - begin;
      best = sorted[begin];
    }
    begin = end;
  }
  return best;
}

// `numbers` is not empty, has the mean `mean`, and is reordered. Returns the number that replaces missing
// numbers.
double FillNumber(std::vector<double>& numbers, v1::MissingValues missing, double mean) {
  if (missing == v1::MISSING_VALUES_MEAN) return mean;
  if (missing != v1::MISSING_VALUES_MOST_FREQUENT) return Median(numbers);
  std::sort(numbers.begin(), numbers.end());
  return MostFrequent(numbers);
}

// The days since 1970-01-01, and the hour of the day.
using Moment = std::pair<int64_t, double>;

TableDate DateOf(const Moment& moment) {
  const absl::CivilDay day = absl::CivilDay(1970, 1, 1) + moment.first;
  return {.year = day.year(), .month = day.month(), .day = day.day(), .hour = moment.second};
}

// `moments` is not empty. Returns the mean, rounded to a second if the column has times, otherwise to a day.
// Halves are rounded up.
Moment Mean(const std::vector<Moment>& moments, bool has_time) {
  double days = 0, hours = 0;
  for (const auto& [day, hour] : moments) {
    days += static_cast<double>(day);
    hours += hour;
  }
  const double mean = (days + hours / 24) / static_cast<double>(moments.size());
  constexpr double kDaySeconds = 24 * 60 * 60;
  if (!has_time) return {static_cast<int64_t>(std::floor(mean + 0.5)), 0};
  const double seconds = std::floor(mean * kDaySeconds + 0.5), day = std::floor(seconds / kDaySeconds);
  return {static_cast<int64_t>(day), (seconds - day * kDaySeconds) / 3600};
}

// `parts` has the dates' parts in the order of DateParts, of at least one date. Returns the parts of the date
// that replaces missing dates, as v1::MissingValues documents. Parts that are chosen one by one would be of a
// date that no row has.
std::array<double, kDateParts> FillDate(const std::vector<std::vector<double>>& parts,
                                        v1::MissingValues missing) {
  const bool has_time = parts.size() == kDateParts;
  std::vector<Moment> moments(parts[0].size());
  for (size_t i = 0; i < moments.size(); ++i) {
    const TableDate date = {.year = static_cast<int64_t>(parts[0][i]),
                            .month = static_cast<int>(parts[1][i]),
                            .day = static_cast<int>(parts[2][i])};
    moments[i] = {date.Days(), has_time ? parts[4][i] : 0};
  }
  if (missing == v1::MISSING_VALUES_MEAN) return DateParts(DateOf(Mean(moments, has_time)));
  if (missing == v1::MISSING_VALUES_MOST_FREQUENT) {
    std::sort(moments.begin(), moments.end());
    return DateParts(DateOf(MostFrequent(moments)));
  }
  const auto middle = moments.begin() + static_cast<int64_t>((moments.size() - 1) / 2);
  std::nth_element(moments.begin(), middle, moments.end());
  return DateParts(DateOf(*middle));
}

absl::Status BadConstant(const ColumnPlan& plan, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("column ", QuotedCell(plan.name), " has the constant ",
                                                 QuotedCell(plan.constant), "; it must be ", what));
}

}  // namespace

Scale ScaleOf(const std::vector<double>& numbers) {
  Scale scale;
  if (numbers.empty()) return scale;
  const auto [least, largest] = std::minmax_element(numbers.begin(), numbers.end());
  if (*least == *largest) {
    // The sums below would round: the deviation of equal numbers would be 1e-17, not 0.
    scale.mean = *least;
    return scale;
  }
  double sum = 0;
  for (const double number : numbers) sum += number;
  scale.mean = sum / static_cast<double>(numbers.size());
  double squares = 0;
  for (const double number : numbers) squares += (number - scale.mean) * (number - scale.mean);
  const double deviation = std::sqrt(squares / static_cast<double>(numbers.size()));
  if (deviation > 0 && std::isfinite(deviation)) scale.deviation = deviation;
  return scale;
}

v1::PreparedColumn Unfitted(const ColumnPlan& plan) {
  v1::PreparedColumn column;
  column.set_name(plan.name);
  column.set_kind(plan.kind);
  column.set_refuse_missing(plan.missing == v1::MISSING_VALUES_REFUSE);
  column.set_missing_indicator(plan.missing_indicator);
  column.set_day_first(plan.day_first);
  column.set_category_inputs(plan.category_inputs);
  column.set_missing(plan.missing);
  column.set_constant(plan.constant);
  if (plan.kind != v1::COLUMN_KIND_CATEGORY) column.set_scaling(plan.scaling);
  column.set_max_categories(plan.max_categories);
  for (int i = 0; i < NumbersOf(plan); ++i) column.add_numbers()->set_deviation(1);
  return column;
}

ColumnFit::ColumnFit(ColumnPlan plan, CellRules rules)
    : plan_(std::move(plan)), rules_(std::move(rules)), numbers_(NumbersOf(plan_)) {}

void ColumnFit::Reserve(int64_t rows) {
  for (std::vector<double>& numbers : numbers_) numbers.reserve(rows);
}

void ColumnFit::Add(absl::string_view cell) {
  if (plan_.kind == v1::COLUMN_KIND_NUMBER && rules_.missing_texts.empty()) {
    double number = 0;
    if (ParseCsvNumber(cell, rules_.decimal_comma, &number)) numbers_[0].push_back(number);
    return;
  }
  cell = StripCell(cell);
  if (rules_.IsMissing(cell)) return;
  if (plan_.kind == v1::COLUMN_KIND_CATEGORY) {
    ++counts_[NameToUtf8(cell)];
  } else if (plan_.kind == v1::COLUMN_KIND_NUMBER) {
    double number = 0;
    if (ParseCsvNumber(cell, rules_.decimal_comma, &number)) numbers_[0].push_back(number);
  } else if (const std::optional<TableDate> date = ParseTableDate(cell, plan_.day_first); date.has_value()) {
    const std::array<double, kDateParts> parts = DateParts(*date);
    for (size_t i = 0; i < numbers_.size(); ++i) numbers_[i].push_back(parts[i]);
  }
}

absl::Status ColumnFit::FinishNumbers(v1::PreparedColumn* column) {
  std::array<double, kDateParts> fills = {};
  if (plan_.missing == v1::MISSING_VALUES_CONSTANT && plan_.kind == v1::COLUMN_KIND_NUMBER) {
    if (!ParseCsvNumber(plan_.constant, rules_.decimal_comma, fills.data())) {
      return BadConstant(plan_, "a finite number");
    }
  } else if (plan_.missing == v1::MISSING_VALUES_CONSTANT) {
    const std::optional<TableDate> date = ParseTableDate(plan_.constant, plan_.day_first);
    if (!date.has_value()) return BadConstant(plan_, "a date such as 2024-05-31");
    fills = DateParts(*date);
  } else if (plan_.kind == v1::COLUMN_KIND_DATE && !numbers_[0].empty()) {
    fills = FillDate(numbers_, plan_.missing);
  }
  for (size_t i = 0; i < numbers_.size(); ++i) {
    v1::PreparedNumber& number = *column->mutable_numbers(static_cast<int>(i));
    const Scale scale = ScaleOf(numbers_[i]);
    if (plan_.scaling != v1::NUMBER_SCALING_NONE) {
      number.set_mean(scale.mean);
      number.set_deviation(scale.deviation);
    }
    number.set_fill(fills[i]);
    if (numbers_[i].empty()) continue;
    if (plan_.kind == v1::COLUMN_KIND_NUMBER && plan_.missing != v1::MISSING_VALUES_CONSTANT) {
      number.set_fill(FillNumber(numbers_[i], plan_.missing, scale.mean));
    }
    if (plan_.scaling != v1::NUMBER_SCALING_QUANTILES) continue;
    std::sort(numbers_[i].begin(), numbers_[i].end());
    if (numbers_[i].front() == numbers_[i].back()) continue;
    const size_t count = std::min(kMostQuantiles, numbers_[i].size());
    for (size_t q = 0; q < count; ++q) number.add_quantiles(Quantile(numbers_[i], q, count - 1));
  }
  return absl::OkStatus();
}

absl::Status ColumnFit::FinishCategories(v1::PreparedColumn* column) {
  // The most frequent categories, and of equally frequent ones the first in alphabetical order.
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [name, count] : counts_) order.emplace_back(-count, name);
  std::sort(order.begin(), order.end());
  if (plan_.missing == v1::MISSING_VALUES_MOST_FREQUENT && !order.empty()) column->set_fill(order[0].second);
  if (plan_.missing == v1::MISSING_VALUES_CONSTANT) column->set_fill(plan_.constant);
  if (static_cast<int64_t>(order.size()) > plan_.category_inputs) order.resize(plan_.category_inputs);
  std::vector<std::string> names;
  for (auto& [count, name] : order) names.push_back(std::move(name));
  std::sort(names.begin(), names.end());
  for (std::string& name : names) column->add_categories(std::move(name));
  return absl::OkStatus();
}

absl::StatusOr<v1::PreparedColumn> ColumnFit::Finish() {
  v1::PreparedColumn column = Unfitted(plan_);
  TANDEM_RETURN_IF_ERROR(plan_.kind == v1::COLUMN_KIND_CATEGORY ? FinishCategories(&column)
                                                                : FinishNumbers(&column));
  return column;
}

}  // namespace tandem
