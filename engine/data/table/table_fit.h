#ifndef TANDEM_ENGINE_DATA_TABLE_TABLE_FIT_H_
#define TANDEM_ENGINE_DATA_TABLE_TABLE_FIT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/table/cell.h"
#include "tandem/v1/table.pb.h"

namespace tandem {

// The preparation that a job chose for a column of a training table.
struct ColumnPlan {
  std::string name;
  v1::ColumnKind kind = v1::COLUMN_KIND_NUMBER;  // Number, category or date.
  v1::MissingValues missing = v1::MISSING_VALUES_UNSPECIFIED;
  std::string constant = "";
  bool missing_indicator = false;
  v1::NumberScaling scaling = v1::NUMBER_SCALING_NONE;
  int64_t category_inputs = 0;  // The number of most frequent categories with an input of their own.
  int64_t max_categories = 0;   // The limit on category_inputs that the job gave.
  bool has_time = false;
  bool day_first = false;
};

// Returns the preparation of a column before its numbers are known: scales of 1, fills of 0, no categories.
v1::PreparedColumn Unfitted(const ColumnPlan& plan);

// Computes the preparation of a column from the cells of training rows. Not thread-safe.
class ColumnFit {
 public:
  ColumnFit(ColumnPlan plan, CellRules rules);

  // Reserves memory for this many rows: 8 bytes for each number.
  void Reserve(int64_t rows);
  // Adds a training row's cell. Missing cells, and cells that do not fit the kind, are skipped.
  void Add(absl::string_view cell);
  // Returns the preparation. INVALID_ARGUMENT if the plan's constant does not fit.
  absl::StatusOr<v1::PreparedColumn> Finish();

 private:
  absl::Status FinishNumbers(v1::PreparedColumn* column);
  absl::Status FinishCategories(v1::PreparedColumn* column);

  ColumnPlan plan_;
  CellRules rules_;
  std::vector<std::vector<double>> numbers_;          // The number, or each part of dates.
  absl::flat_hash_map<std::string, int64_t> counts_;  // Of categories.
};

// The mean and the standard deviation of numbers. A deviation that is 0 or not finite is 1.
struct Scale {
  double mean = 0;
  double deviation = 1;
};
Scale ScaleOf(const std::vector<double>& numbers);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_TABLE_TABLE_FIT_H_
