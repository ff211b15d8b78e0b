#include "engine/data/table/unknown_categories.h"

#include "absl/strings/str_cat.h"
#include "engine/data/data_names.h"
#include "engine/data/table/cell.h"

namespace tandem {

void UnknownCategories::Add(size_t column, absl::string_view cell) {
  if (!encoder_.IsUnknownCategory(column, cell)) return;
  Column& counted = columns_[column];
  if (counted.cells++ == 0) counted.first = NameToUtf8(StripCell(cell));
}

std::vector<std::string> UnknownCategories::Notices() const {
  std::vector<std::string> notices;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    if (column.cells == 0) continue;
    const std::string& name = encoder_.preparation().columns(static_cast<int>(i)).name();
    notices.push_back(absl::StrCat(
        "The model knows no category ", QuotedCell(column.first), " of column ", QuotedCell(name), ". ",
        column.cells, column.cells == 1 ? " cell counts" : " cells count", " as other categories."));
  }
  return notices;
}

}  // namespace tandem
