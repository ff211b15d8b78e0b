#ifndef TANDEM_ENGINE_DATA_TABLE_TABLE_ENCODER_H_
#define TANDEM_ENGINE_DATA_TABLE_TABLE_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/data/table/cell.h"
#include "tandem/v1/layer.pb.h"
#include "tandem/v1/table.pb.h"

namespace tandem {

// Turns raw cells into inputs of the network by a fitted preparation. Immutable, so thread-safe.
class TableEncoder {
 public:
  explicit TableEncoder(v1::TablePreparation preparation);

  size_t columns() const { return columns_.size(); }
  // Returns the number of inputs of a row.
  int64_t inputs() const { return inputs_; }
  const v1::TablePreparation& preparation() const { return preparation_; }

  // Appends the inputs of a cell of column `column`. INVALID_ARGUMENT if the cell does not fit. The message
  // begins with a verb, such as "is 'x'; ...", so that the caller can put the cell's place before it.
  absl::Status Encode(size_t column, absl::string_view cell, std::vector<float>* inputs) const;
  // Returns whether a cell of column `column` is a category without an input of its own.
  bool IsUnknownCategory(size_t column, absl::string_view cell) const;

 private:
  struct Column {
    absl::flat_hash_map<std::string, int64_t> categories;
    int64_t inputs = 0;
  };

  absl::Status EncodeNumbers(const v1::PreparedColumn& column, absl::string_view cell, bool missing,
                             std::vector<float>* inputs) const;
  void EncodeCategory(size_t column, absl::string_view cell, bool missing, std::vector<float>* inputs) const;

  const v1::TablePreparation preparation_;
  CellRules rules_;
  std::vector<Column> columns_;
  int64_t inputs_ = 0;
};

// Returns the number of inputs that a column becomes.
int64_t InputsOf(const v1::PreparedColumn& column);

// Returns the columns of categories, in the order of their inputs. Their dimensions are not set.
std::vector<v1::EmbeddedColumn> CategoryColumnsOf(const v1::TablePreparation& preparation);

// Returns the parts of a date, in the order of PreparedColumn.numbers: year, month, day, weekday, hour.
inline constexpr int kDateParts = 5;
std::array<double, kDateParts> DateParts(const TableDate& date);

// Checks a preparation from a file, so that an encoder can use it. INVALID_ARGUMENT with the fault.
absl::Status CheckPreparation(const v1::TablePreparation& preparation);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_TABLE_TABLE_ENCODER_H_
