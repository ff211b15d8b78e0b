#include "engine/training/prediction_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/data/data_names.h"
#include "engine/data/formats/csv_format.h"
#include "engine/data/formats/csv_reader.h"
#include "engine/data/table/cell.h"
#include "engine/data/table/table_encoder.h"
#include "engine/data/table/unknown_categories.h"

namespace tandem {
namespace {

using Cells = std::vector<absl::string_view>;

// Returns the form of the table, with the delimiter of the training table if it splits the first row.
absl::StatusOr<CsvFormat> FormatOf(absl::string_view text, const TrainedModel& model) {
  v1::CsvSource source;
  if (!model.trained_on.table.has_value()) return FindCsvFormat(source, text, /*is_whole=*/true);
  v1::CsvSource known;
  const char delimiter = model.trained_on.table->delimiter;
  known.set_delimiter(delimiter == '\t' ? "\\t" : std::string(1, delimiter));
  TANDEM_ASSIGN_OR_RETURN(CsvFormat format, FindCsvFormat(known, text, /*is_whole=*/true));
  CsvReader reader(text, format.syntax);
  Cells cells;
  const absl::StatusOr<bool> any = reader.Next(&cells);
  if (any.ok() && *any && cells.size() > 1) return format;
  return FindCsvFormat(source, text, /*is_whole=*/true);
}

// The place of each prepared column in a row.
struct Places {
  std::vector<size_t> columns;
  bool by_name = false;  // The first row names the columns.
};

absl::StatusOr<Places> FindPlaces(const Cells& first, const TrainedModel& model) {
  const v1::TablePreparation& preparation = *model.trained_on.preparation;
  std::map<std::string, std::vector<size_t>> names;
  for (size_t i = 0; i < first.size(); ++i)
    names[NameToUtf8(absl::StripAsciiWhitespace(first[i]))].push_back(i);
  Places places;
  std::vector<std::string> missing;
  for (const v1::PreparedColumn& column : preparation.columns()) {
    const auto found = names.find(column.name());
    if (found == names.end()) {
      missing.push_back(column.name());
    } else if (found->second.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat("row 1 has ", found->second.size(), " columns ",
                                                     QuotedCell(column.name()),
                                                     "; give them different names"));
    } else {
      places.columns.push_back(found->second[0]);
    }
  }
  const bool has_names = !model.trained_on.feature_names.empty();
  places.by_name = has_names && missing.empty();
  if (places.by_name) return places;
  if (has_names && !places.columns.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("row 1 names no ", missing.size() == 1 ? "column " : "columns ", ListNames(missing),
                     ", by which the model was trained; columns are matched by "
                     "their names, in any order; add the columns"));
  }
  const auto wanted = static_cast<size_t>(preparation.columns_size());
  const auto& table = model.trained_on.table;
  if (first.size() == wanted) {
    places.columns.resize(wanted);
    std::iota(places.columns.begin(), places.columns.end(), 0);
  } else if (table.has_value() && static_cast<size_t>(table->columns) == first.size() &&
             table->feature_positions.size() == wanted) {
    places.columns.assign(table->feature_positions.begin(), table->feature_positions.end());
  } else {
    std::vector<std::string> all;
    for (const v1::PreparedColumn& column : preparation.columns()) all.push_back(column.name());
    return absl::InvalidArgumentError(absl::StrCat(
        "row 1 has ", first.size(), first.size() == 1 ? " column" : " columns",
        has_names ? " and does not name the model's columns" : "", "; give a table with the columns ",
        ListNames(all),
        table.has_value() ? absl::StrCat(", or with the ", table->columns, " columns of the training table")
                          : ""));
  }
  return places;
}

}  // namespace

absl::StatusOr<Tensor> ReadPreparedTable(absl::string_view bytes, const TrainedModel& model,
                                         std::vector<std::string>* notices) {
  std::string text;
  TextDecoder decoder(EncodingOf(v1::CsvSource(), bytes));
  TANDEM_RETURN_IF_ERROR(decoder.Decode(bytes, &text));
  TANDEM_RETURN_IF_ERROR(decoder.Finish());
  TANDEM_ASSIGN_OR_RETURN(const CsvFormat format, FormatOf(text, model));
  CsvReader reader(text, format.syntax);
  Cells cells;
  TANDEM_ASSIGN_OR_RETURN(bool more, reader.Next(&cells));
  if (more && format.has_separator_row) {
    TANDEM_ASSIGN_OR_RETURN(more, reader.Next(&cells));
  }
  if (!more) return absl::InvalidArgumentError("has no rows");
  const size_t width = cells.size();
  v1::TablePreparation preparation = *model.trained_on.preparation;
  if (format.RulesOutDecimalCommas(width)) preparation.set_decimal_comma(false);
  const TableEncoder encoder(std::move(preparation));
  TANDEM_ASSIGN_OR_RETURN(const Places places, FindPlaces(cells, model));
  if (places.by_name) {
    TANDEM_ASSIGN_OR_RETURN(more, reader.Next(&cells));
  }
  std::vector<float> inputs;
  UnknownCategories unknown(encoder);
  int64_t rows = 0;
  for (; more; ++rows) {
    if (cells.size() != width) {
      return absl::InvalidArgumentError(absl::StrCat("row ", reader.row(), " has ", cells.size(),
                                                     " columns, but the first row has ", width));
    }
    for (size_t i = 0; i < places.columns.size(); ++i) {
      unknown.Add(i, cells[places.columns[i]]);
      const absl::Status status = encoder.Encode(i, cells[places.columns[i]], &inputs);
      if (status.ok()) continue;
      const std::string& name = encoder.preparation().columns(static_cast<int>(i)).name();
      return absl::InvalidArgumentError(
          absl::StrCat("row ", reader.row(), ", column ", QuotedCell(name), " ", status.message()));
    }
    TANDEM_ASSIGN_OR_RETURN(more, reader.Next(&cells));
  }
  if (rows == 0) return absl::InvalidArgumentError("has no rows but the one that names its columns");
  for (std::string& notice : unknown.Notices()) notices->push_back(std::move(notice));
  Tensor samples(DType::kFloat32, Shape({rows, encoder.inputs()}));
  std::copy(inputs.begin(), inputs.end(), samples.data<float>().begin());
  return samples;
}

}  // namespace tandem
