#ifndef TANDEM_ENGINE_DATA_FORMATS_CSV_COLUMNS_H_
#define TANDEM_ENGINE_DATA_FORMATS_CSV_COLUMNS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/data/formats/csv_table.h"
#include "engine/data/table/column_profile.h"
#include "engine/data/table/table_fit.h"
#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/table.pb.h"

namespace tandem {

// How the features of a training table become inputs.
struct CsvColumns {
  // Whether the features need a preparation. If not, all are numbers that are used as they are.
  bool is_prepared = false;
  // Whether numbers are scaled by default.
  bool scales = false;
  // The positions of the columns that become inputs, and how.
  std::vector<size_t> features = {};
  std::vector<ColumnPlan> plans = {};
  // Sentences for people.
  std::vector<std::string> notices = {};
};

// Returns the kind that `source` gives for a column, or unspecified.
v1::ColumnKind WantedKind(const v1::CsvSource& source, const std::string& name);

// Returns empty profiles of the table's features.
std::vector<ColumnProfile> ProfilesOf(const v1::CsvSource& source, const CsvTable& table);

// Decides how the features become inputs, from the profiles of all rows. INVALID_ARGUMENT with the wrong
// fields, or with the place of a cell that does not fit.
absl::StatusOr<CsvColumns> PlanCsvColumns(const v1::CsvSource& source, const CsvTable& table,
                                          const std::vector<ColumnProfile>& profiles);

// Checks that `source` makes no other choices than the preparation of the model to which `table` is matched.
// A model without a preparation takes plain numbers. INVALID_ARGUMENT with the fields that contradict the
// model. MISSING_VALUES_REFUSE is always allowed: see PreparationFor.
absl::Status CheckModelChoices(const v1::CsvSource& source, const CsvTable& table,
                               const std::optional<v1::TablePreparation>& preparation);

// Returns whether the numbers of `table` have a decimal comma. `model` says whether the numbers of the
// model's table had one. `source` decides if it gives the mark. Otherwise the table has the model's mark,
// except if none of its cells can have a comma. A mark guessed from this table alone could read 1.234 as
// another number than the model does.
bool DecimalCommaOf(const v1::CsvSource& source, const CsvTable& table, bool model);

// Returns the preparation as `table` needs it: refuse_missing for each column whose missing cells `source`
// refuses, and the table's decimal mark (DecimalCommaOf).
std::optional<v1::TablePreparation> PreparationFor(const v1::CsvSource& source, const CsvTable& table,
                                                   std::optional<v1::TablePreparation> preparation);

// Checks the fields of `source` that choose kinds, missing cells and scales, without the table.
absl::Status CheckCsvChoices(const v1::CsvSource& source);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_COLUMNS_H_
