#include "engine/data/formats/csv_row_reader.h"

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/data/formats/csv_columns.h"
#include "engine/data/formats/csv_targets.h"

namespace tandem {
namespace {

absl::StatusOr<double> Feature(const CsvTable& table, int64_t row, size_t column,
                               const std::vector<absl::string_view>& fields) {
  return CsvNumber(table, row, column, fields[column], ", or leave the column out of csv.feature_columns");
}

}  // namespace

CsvRowReader::CsvRowReader(const v1::CsvSource& source, const CsvTable& table,
                           const std::optional<v1::TablePreparation>& preparation) {
  std::optional<v1::TablePreparation> read = PreparationFor(source, table, preparation);
  if (read.has_value()) encoder_.emplace(*std::move(read));
}

absl::Status CsvRowReader::Read(const CsvTable& table, int64_t row,
                                const std::vector<absl::string_view>& fields,
                                std::vector<float>* inputs) const {
  inputs->clear();
  for (size_t i = 0; i < table.features.size(); ++i) {
    const size_t column = table.features[i];
    if (!encoder_.has_value()) {
      TANDEM_ASSIGN_OR_RETURN(const double value, Feature(table, row, column, fields));
      inputs->push_back(static_cast<float>(value));
      continue;
    }
    const absl::Status status = encoder_->Encode(i, fields[column], inputs);
    if (status.ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat(CsvPlace(table, row, column), " ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace tandem
