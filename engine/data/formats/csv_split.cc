#include "engine/data/formats/csv_split.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/data_names.h"
#include "engine/data/subset.h"

namespace tandem {
namespace {

constexpr double kHoursPerDay = 24;
// The most sums that the search for whole groups looks at, which bounds its time.
constexpr int64_t kMostSums = 1'000'000'000;

}  // namespace

absl::Status CsvSplit::Begin(const CsvTable& table) {
  const int ways = (split_.stratified() ? 1 : 0) + (split_.group_column().empty() ? 0 : 1) +
                   (split_.time_column().empty() ? 0 : 1);
  if (ways > 1) {
    return FieldError("validation_split",
                      "gives several of stratified, group_column and time_column; give one of them");
  }
  if (split_.stratified()) {
    column_ = table.targets[0];
    return absl::OkStatus();
  }
  const bool has_time = !split_.time_column().empty();
  const std::string& wanted = has_time ? split_.time_column() : split_.group_column();
  if (wanted.empty()) return absl::OkStatus();
  const auto found = std::find(table.names.begin(), table.names.end(), wanted);
  if (found == table.names.end()) {
    return FieldError(has_time ? "validation_split.time_column" : "validation_split.group_column",
                      absl::StrCat("is ", QuotedCell(wanted), ", and the table has no such column; it has ",
                                   ListNames(table.names)));
  }
  column_ = found - table.names.begin();
  return absl::OkStatus();
}

absl::Status CsvSplit::Add(const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields) {
  if (rows_++ == 0) TANDEM_RETURN_IF_ERROR(Begin(table));
  if (!column_.has_value()) return absl::OkStatus();
  const absl::string_view cell = absl::StripAsciiWhitespace(fields[*column_]);
  if (split_.time_column().empty()) {
    const auto number = static_cast<int32_t>(numbers_.size());
    groups_.push_back(numbers_.try_emplace(std::string(cell), number).first->second);
    return absl::OkStatus();
  }
  return AddTime(table, row, cell);
}

absl::Status CsvSplit::AddTime(const CsvTable& table, int64_t row, absl::string_view cell) {
  double time = 0;
  const bool is_number = ParseCsvNumber(cell, table.rules.decimal_comma, &time);
  if (!is_number) {
    const std::optional<TableDate> date = ParseTableDate(cell, false);
    if (!date.has_value() || date->is_ambiguous) {
      return FieldError(
          "validation_split.time_column",
          absl::StrCat("is ", QuotedCell(split_.time_column()), ", but ", CsvPlace(table, row, *column_),
                       " is ", QuotedCell(cell), "; it must be a number or a date such as 2024-05-31"));
    }
    time = static_cast<double>(date->Days()) + date->hour / kHoursPerDay;
  }
  if (times_.empty()) {
    has_dates_ = !is_number;
    first_time_ = absl::StrCat(CsvPlace(table, row, *column_), " is ", QuotedCell(cell));
  } else if (has_dates_ == is_number) {
    // A year such as 2024 and days since 1970 have no common order.
    return FieldError(
        "validation_split.time_column",
        absl::StrCat("is ", QuotedCell(split_.time_column()), ", but ", first_time_, ", a ",
                     has_dates_ ? "date" : "number", ", and ", CsvPlace(table, row, *column_), " is ",
                     QuotedCell(cell), ", a ", is_number ? "number" : "date",
                     "; write all cells of the column as numbers, or all as dates such as 2024-05-31"));
  }
  times_.push_back(time);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<bool>> CsvSplit::ChooseGroups(int64_t wanted) const {
  const auto groups = static_cast<int64_t>(numbers_.size());
  if (groups < 2) {
    return FieldError("validation_split.group_column",
                      absl::StrCat("is ", QuotedCell(split_.group_column()),
                                   ", but all rows have the same cell there, so that they cannot be split"));
  }
  std::vector<int64_t> sizes(groups);
  for (const int32_t group : groups_) ++sizes[group];
  const std::vector<uint32_t> order = RandomOrder(groups, split_.seed());
  std::vector<bool> taken(groups);
  // A search in all groups of a large table would take too long. There, the first groups are taken unseen.
  const int64_t largest = *std::max_element(sizes.begin(), sizes.end());
  int64_t next = 0, left = wanted;
  while ((groups - next) * (left + largest) > kMostSums && sizes[order[next]] <= left) {
    left -= sizes[order[next]];
    taken[order[next++]] = true;
  }
  // A sum of left + largest or more is no nearer than the same sum without one of its groups. Some group
  // stays for training.
  const int64_t most = std::min(left + largest, rows_ - (wanted - left) - 1);
  constexpr uint32_t kUnreached = std::numeric_limits<uint32_t>::max();
  // For each sum of groups: the position in `order` of its last group.
  std::vector<uint32_t> last(most + 1, kUnreached);
  last[0] = 0;
  int64_t total = 0, sums = 0;
  for (int64_t i = next; i < groups && last[left] == kUnreached && sums < kMostSums; ++i, sums += total) {
    const int64_t size = sizes[order[i]];
    total = std::min(total + size, most);
    for (int64_t sum = total; sum >= size; --sum) {
      if (last[sum] == kUnreached && last[sum - size] != kUnreached) last[sum] = static_cast<uint32_t>(i);
    }
  }
  const int64_t least = next == 0 ? 1 : 0;
  int64_t distance = 0;
  const auto reached = [&](int64_t sum) { return sum >= least && sum <= most && last[sum] != kUnreached; };
  while (!reached(left - distance) && !reached(left + distance)) ++distance;
  int64_t sum = reached(left - distance) ? left - distance : left + distance;
  while (sum > 0) {
    const uint32_t group = order[last[sum]];
    taken[group] = true;
    sum -= sizes[group];
  }
  std::vector<bool> chosen(rows_);
  for (int64_t row = 0; row < rows_; ++row) chosen[row] = taken[groups_[row]];
  return chosen;
}

std::vector<bool> CsvSplit::ChooseLast(int64_t wanted) const {
  std::vector<uint32_t> order(rows_);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [this](uint32_t a, uint32_t b) { return times_[a] < times_[b]; });
  std::vector<bool> chosen(rows_);
  for (auto row = order.end() - wanted; row != order.end(); ++row) chosen[*row] = true;
  return chosen;
}

absl::StatusOr<std::vector<bool>> CsvSplit::Choose(bool is_class) const {
  if (rows_ < 2) return FieldError("validation_split", "needs at least 2 training samples");
  const int64_t wanted = SplitSamples(rows_, split_.fraction());
  if (split_.stratified() && !is_class) {
    return FieldError("validation_split.stratified",
                      "is given, but the target is no class; leave it out, or give csv.targets: class");
  }
  if (!split_.group_column().empty()) return ChooseGroups(wanted);
  if (!split_.time_column().empty()) return ChooseLast(wanted);
  std::vector<bool> chosen(rows_);
  const SplitIndices split = split_.stratified() ? SplitStratified(groups_, wanted, split_.seed())
                                                 : SplitAtRandom(rows_, wanted, split_.seed());
  for (const uint32_t row : split.validation) chosen[row] = true;
  return chosen;
}

}  // namespace tandem
