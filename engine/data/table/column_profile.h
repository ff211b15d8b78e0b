#ifndef TANDEM_ENGINE_DATA_TABLE_COLUMN_PROFILE_H_
#define TANDEM_ENGINE_DATA_TABLE_COLUMN_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "engine/data/table/cell.h"
#include "tandem/v1/table.pb.h"

namespace tandem {

// Gathers the cells of a column until its kind is known. Not thread-safe.
class ColumnProfile {
 public:
  // Counts different cells up to this number, if the user gave the kind category.
  static constexpr int64_t kMostDistinct = 10000;

  // `wanted` is the kind that the user gave.
  ColumnProfile(CellRules rules, v1::ColumnKind wanted) : rules_(std::move(rules)), wanted_(wanted) {}

  // Adds a cell of row `row`, from 1.
  void Add(int64_t row, absl::string_view cell);

  // Returns the kind that the user gave, otherwise the kind that fits the cells.
  v1::ColumnKind Kind() const;
  // Returns why the cells do not fit the kind, such as "row 4, column 'a' is 'x', but ...", or "".
  // `column` is the column's name, quoted.
  std::string Fault(absl::string_view column) const;

  int64_t missing() const { return missing_; }
  // Returns the row of the first missing cell, or 0.
  int64_t first_missing_row() const { return first_missing_row_; }
  // Returns the number of different cells of a column of categories, at most kMostDistinct. 0 if the cells
  // are too many to be categories, and the user did not give this kind.
  int64_t distinct() const { return static_cast<int64_t>(cells_.size()); }
  // Returns whether each row's number is the number before plus one, in many rows.
  bool counts_rows() const { return is_counting_ && present() >= kLeastCounted && missing_ == 0; }
  // For dates: whether any date has a time; whether dates such as 05/04/2024 have the day first; and whether
  // both orders fit.
  bool has_time() const { return has_time_; }
  bool day_first() const { return month_first_dates_ < texts_; }
  bool is_order_unknown() const {
    return is_ambiguous_ && month_first_dates_ == texts_ && day_first_dates_ == texts_;
  }

 private:
  static constexpr int64_t kLeastCounted = 20;

  int64_t present() const { return numbers_ + texts_; }
  int64_t dates() const {
    return month_first_dates_ > day_first_dates_ ? month_first_dates_ : day_first_dates_;
  }
  void Keep(absl::string_view cell);
  void AddText(int64_t row, absl::string_view cell);

  CellRules rules_;
  v1::ColumnKind wanted_;
  int64_t missing_ = 0;
  int64_t first_missing_row_ = 0;
  int64_t numbers_ = 0;
  int64_t texts_ = 0;  // Cells that are no number.
  int64_t month_first_dates_ = 0;
  int64_t day_first_dates_ = 0;
  bool has_time_ = false;
  bool is_ambiguous_ = false;
  // The first text, and the first text that is no date.
  std::string first_text_;
  int64_t first_text_row_ = 0;
  bool shows_marks_ = false;  // Whether first_text_ is the first number with marks between thousands.
  std::string first_other_;
  int64_t first_other_row_ = 0;
  bool has_several_texts_ = false;
  bool is_counting_ = true;
  double last_number_ = 0;
  // Texts that are infinite, too large for a float, or have marks between thousands.
  int64_t odd_numbers_ = 0;
  // The different cells. Empty if there are too many, unless the user gave the kind category.
  absl::flat_hash_set<std::string> cells_;
  size_t cell_bytes_ = 0;
  bool has_too_many_ = false;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_TABLE_COLUMN_PROFILE_H_
