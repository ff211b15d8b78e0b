#ifndef TANDEM_ENGINE_DATA_FORMATS_CSV_SPLIT_H_
#define TANDEM_ENGINE_DATA_FORMATS_CSV_SPLIT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/csv_table.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// Chooses the rows of a training table that a ValidationSplit takes for validation. Not thread-safe.
class CsvSplit {
 public:
  // `split` must outlive this object.
  explicit CsvSplit(const v1::ValidationSplit& split) : split_(split) {}

  // Looks at the next row. INVALID_ARGUMENT with the wrong fields ("validation_split.group_column").
  absl::Status Add(const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields);
  // Returns whether each row belongs to validation. Both sides have a row. `is_class`: the target is a class.
  // INVALID_ARGUMENT with the wrong fields.
  absl::StatusOr<std::vector<bool>> Choose(bool is_class) const;

 private:
  absl::Status Begin(const CsvTable& table);
  // Appends the time of a cell. INVALID_ARGUMENT if the cell is no time, or if another cell is of the other
  // kind.
  absl::Status AddTime(const CsvTable& table, int64_t row, absl::string_view cell);
  absl::StatusOr<std::vector<bool>> ChooseGroups(int64_t wanted) const;
  std::vector<bool> ChooseLast(int64_t wanted) const;

  const v1::ValidationSplit& split_;
  std::optional<size_t> column_;  // Of classes, groups or times.
  int64_t rows_ = 0;
  // The number of each row's class or group, in the order of their first rows.
  std::vector<int32_t> groups_;
  absl::flat_hash_map<std::string, int32_t> numbers_;
  std::vector<double> times_;
  bool has_dates_ = false;  // Whether the times are dates. If not, they are numbers.
  std::string first_time_;  // The place and the text of the first time, for messages.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_SPLIT_H_
