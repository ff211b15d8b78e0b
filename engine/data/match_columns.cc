#include "engine/data/match_columns.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"

namespace tandem {
namespace {

// Returns whether the model orders the features differently from the spec, or from the table if the spec has
// no order.
bool AreReordered(const v1::CsvSource& source, const DataNames& model, const DatasetInfo& info) {
  if (info.feature_names != model.features) return false;
  const auto& given = source.feature_columns();
  if (!given.empty()) {
    return !std::equal(given.begin(), given.end(), model.features.begin(), model.features.end());
  }
  return !std::is_sorted(info.feature_positions.begin(), info.feature_positions.end());
}

}  // namespace

absl::Status MatchColumns(const v1::DatasetSpec& spec, const DataNames& model, DatasetInfo& info) {
  if (!model.matches_inputs) return absl::OkStatus();
  if (model.preparation.has_value() && !spec.has_csv()) {
    return FieldError("", "is no table, but the model prepares the rows of a table; give csv");
  }
  if (model.features.empty()) {
    if (info.feature_names.empty()) return absl::OkStatus();
    info.notices.push_back(
        absl::StrCat("The model does not name its columns, so that those of the data are matched to them by "
                     "position: ",
                     ListNames(info.feature_names), "."));
    return absl::OkStatus();
  }
  if (info.feature_names.empty()) {
    const auto columns = info.feature_positions.empty() ? info.shape.elements()
                                                        : static_cast<int64_t>(info.feature_positions.size());
    if (columns != static_cast<int64_t>(model.features.size())) return absl::OkStatus();
    info.notices.push_back(absl::StrCat(
        "The data do not name their columns, so that they are matched to the model's by position: "
        "the features are taken for ",
        ListNames(model.features), "."));
    info.feature_names = model.features;
    if (info.target_names.empty()) info.target_names = model.targets;
    return absl::OkStatus();
  }
  const bool by_column =
      spec.normalization().mean_size() > 1 || spec.normalization().standard_deviation_size() > 1;
  if (!by_column || !AreReordered(spec.csv(), model, info)) return absl::OkStatus();
  return FieldError(
      "normalization",
      absl::StrCat("has a number a column, but the model takes the columns in another order, ",
                   ListNames(model.features), "; give csv.feature_columns and the numbers in this order"));
}

}  // namespace tandem
