#ifndef TANDEM_ENGINE_DATA_TABLE_UNKNOWN_CATEGORIES_H_
#define TANDEM_ENGINE_DATA_TABLE_UNKNOWN_CATEGORIES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/data/table/table_encoder.h"

namespace tandem {

// Counts the cells whose category a model does not know, such as a misspelt name. An encoder reads these
// cells as other categories, without an error. Not thread-safe.
class UnknownCategories {
 public:
  // `encoder` must outlive this object.
  explicit UnknownCategories(const TableEncoder& encoder) : encoder_(encoder), columns_(encoder.columns()) {}

  // Looks at a cell of column `column` of the encoder.
  void Add(size_t column, absl::string_view cell);

  // Returns a notice for each column with such cells.
  std::vector<std::string> Notices() const;

 private:
  struct Column {
    int64_t cells = 0;
    std::string first;  // The first such cell.
  };

  const TableEncoder& encoder_;
  std::vector<Column> columns_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_TABLE_UNKNOWN_CATEGORIES_H_
