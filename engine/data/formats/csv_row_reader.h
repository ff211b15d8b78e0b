#ifndef TANDEM_ENGINE_DATA_FORMATS_CSV_ROW_READER_H_
#define TANDEM_ENGINE_DATA_FORMATS_CSV_ROW_READER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/csv_table.h"
#include "engine/data/table/table_encoder.h"
#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/table.pb.h"

namespace tandem {

// Reads a row's features as inputs of the network. Thread-safe.
class CsvRowReader {
 public:
  // `preparation` is of the features of `table`, a table of `source`. Without a preparation, features are
  // numbers that are used as they are.
  CsvRowReader(const v1::CsvSource& source, const CsvTable& table,
               const std::optional<v1::TablePreparation>& preparation);

  // The encoder of a prepared table.
  const std::optional<TableEncoder>& encoder() const { return encoder_; }

  // Replaces `inputs` by the inputs of a row. INVALID_ARGUMENT with the place of a cell that does not fit.
  absl::Status Read(const CsvTable& table, int64_t row, const std::vector<absl::string_view>& fields,
                    std::vector<float>* inputs) const;

 private:
  std::optional<TableEncoder> encoder_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_CSV_ROW_READER_H_
