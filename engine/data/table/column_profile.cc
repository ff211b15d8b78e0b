#include "engine/data/table/column_profile.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

constexpr size_t kMostCellBytes = size_t{4} << 20;
// A column is text, not categories, if it has more different cells, or if they repeat too rarely.
constexpr int64_t kMostCategories = 100;
constexpr int64_t kLeastRepeats = 2;
// At most one text in so many cells is a mistake in a column of numbers or dates.
constexpr int64_t kCellsForMistake = 20;

}  // namespace

void ColumnProfile::Keep(absl::string_view cell) {
  if (has_too_many_ || cells_.contains(cell)) return;
  const bool is_wanted = wanted_ == v1::COLUMN_KIND_CATEGORY;
  if (distinct() == (is_wanted ? kMostDistinct : kMostCategories) ||
      cell_bytes_ + cell.size() > kMostCellBytes) {
    has_too_many_ = true;
    if (!is_wanted) cells_ = {};
    return;
  }
  cell_bytes_ += cell.size();
  cells_.emplace(cell);
}

void ColumnProfile::AddText(int64_t row, absl::string_view cell) {
  if (texts_ == 0) {
    first_text_ = std::string(cell);
    first_text_row_ = row;
  } else if (!has_several_texts_ && cell != first_text_) {
    has_several_texts_ = true;
  }
  double number = 0;
  const bool has_marks = HasThousandsMarks(cell, rules_.decimal_comma);
  if (has_marks && !shows_marks_) {
    // Messages show the cell that tells most.
    shows_marks_ = true;
    first_text_ = std::string(cell);
    first_text_row_ = row;
  }
  if (has_marks || (!IsHexadecimal(cell) && absl::SimpleAtod(cell, &number))) ++odd_numbers_;
  const auto add_date = [&](bool day_first, int64_t* dates) {
    // If any text before is no date in this order, the order does not matter.
    const bool matters = *dates == texts_ || *dates * kCellsForMistake >= texts_ * (kCellsForMistake - 1);
    const std::optional<TableDate> date = matters ? ParseTableDate(cell, day_first) : std::nullopt;
    if (!date.has_value()) return false;
    ++*dates;
    has_time_ |= date->has_time;
    is_ambiguous_ |= date->is_ambiguous;
    return true;
  };
  const bool month_first = add_date(false, &month_first_dates_);
  const bool day_first = add_date(true, &day_first_dates_);
  if (!month_first && !day_first && first_other_row_ == 0) {
    first_other_ = std::string(cell);
    first_other_row_ = row;
  }
  ++texts_;
}

void ColumnProfile::Add(int64_t row, absl::string_view cell) {
  double number = 0;
  const bool is_number = ParseCsvNumber(cell, rules_.decimal_comma, &number);
  is_counting_ = is_counting_ && is_number && (present() == 0 || number == last_number_ + 1);
  last_number_ = number;
  if (is_number && rules_.missing_texts.empty()) {
    ++numbers_;
    Keep(StripCell(cell));
    return;
  }
  cell = StripCell(cell);
  if (rules_.IsMissing(cell)) {
    if (missing_++ == 0) first_missing_row_ = row;
    return;
  }
  if (is_number) {
    ++numbers_;
  } else {
    AddText(row, cell);
  }
  Keep(cell);
}

v1::ColumnKind ColumnProfile::Kind() const {
  if (wanted_ != v1::COLUMN_KIND_UNSPECIFIED) return wanted_;
  if (present() == 0) return v1::COLUMN_KIND_IGNORED;
  if (texts_ == 0) return v1::COLUMN_KIND_NUMBER;
  if (dates() == present()) return v1::COLUMN_KIND_DATE;
  // Numbers that cannot be read are mistakes in a column of numbers, however many there are.
  const int64_t others = texts_ - odd_numbers_;
  if (others < present() && (others * kCellsForMistake <= present() || !has_several_texts_)) {
    return v1::COLUMN_KIND_NUMBER;
  }
  if (dates() * kCellsForMistake >= present() * (kCellsForMistake - 1)) return v1::COLUMN_KIND_DATE;
  if (has_too_many_) return v1::COLUMN_KIND_TEXT;
  if (distinct() == 1 && missing_ == 0) return v1::COLUMN_KIND_IGNORED;
  return distinct() * kLeastRepeats <= present() ? v1::COLUMN_KIND_CATEGORY : v1::COLUMN_KIND_TEXT;
}

std::string ColumnProfile::Fault(absl::string_view column) const {
  const bool was_given = wanted_ != v1::COLUMN_KIND_UNSPECIFIED;
  switch (Kind()) {
    case v1::COLUMN_KIND_NUMBER: {
      if (texts_ == 0) return "";
      const std::string rule = NumberRule(first_text_, rules_.decimal_comma);
      if (was_given) {
        return absl::StrCat("row ", first_text_row_, ", column ", column, " is ", QuotedCell(first_text_),
                            "; ", rule, ", or the column's kind must be another");
      }
      return absl::StrCat("row ", first_text_row_, ", column ", column, " is ", QuotedCell(first_text_), "; ",
                          rule,
                          numbers_ == 0 ? ""
                                        : absl::StrCat(", because the column holds numbers in ", numbers_,
                                                       numbers_ == 1 ? " other row" : " other rows"),
                          "; correct it, name such cells in csv.missing_texts, or give the column's kind in "
                          "csv.columns",
                          DecimalCommaAdvice(first_text_, rules_.decimal_comma));
    }
    case v1::COLUMN_KIND_DATE: {
      if (dates() == present()) return "";
      const bool is_number = first_other_row_ == 0;
      return absl::StrCat(is_number ? "" : absl::StrCat("row ", first_other_row_, ", "), "column ", column,
                          is_number ? " has numbers or dates of another order"
                                    : absl::StrCat(" is ", QuotedCell(first_other_)),
                          "; it must be a date such as 2024-05-31, as ", dates(),
                          " other cells are; correct it, name such "
                          "cells in csv.missing_texts, or give the column's kind in csv.columns");
    }
    case v1::COLUMN_KIND_CATEGORY:
      return present() == 0 ? absl::StrCat("column ", column, " has no category; all its cells are missing")
                            : "";
    default:
      return "";
  }
}

}  // namespace tandem
