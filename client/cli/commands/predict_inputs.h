#ifndef TANDEM_CLIENT_CLI_COMMANDS_PREDICT_INPUTS_H_
#define TANDEM_CLIENT_CLI_COMMANDS_PREDICT_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tandem/v1/prediction.pb.h"

namespace tandem::cli {

// Returns the files to predict, with a folder's pictures in place of the folder. Adds a sentence to `notes`
// about each folder with files of other formats.
absl::StatusOr<std::vector<std::string>> PredictFiles(const std::vector<std::string>& inputs,
                                                      std::vector<std::string>& notes);

// A file as an input, or a part of a large file. A part has a call of its own, so that its predictions are
// known.
struct InputPart {
  v1::PredictInput input;
  bool is_alone = false;
  // Of a part of an array: the number of its first sample in the file.
  int64_t first_sample = 0;
  // Of a part of a table: the number of its rows. Each part begins with the table's first row. 0 otherwise.
  int64_t table_rows = 0;
  // Of a part of a table: whether it is the table's first part.
  bool begins_table = false;
};

// Reads a file as an input, or as several parts if it is a large array or table. The content chooses the
// format. `sample_elements` is the number of elements of the model's samples. Errors name the file.
absl::StatusOr<std::vector<InputPart>> ReadPredictInput(const std::string& path, int64_t sample_elements);

// Numbers the predictions of a large table, whose first row is sent with each part. If this row is a sample,
// not the names of the columns, its predictions after the first are removed.
class TableNumbers {
 public:
  // Takes the predictions of the next part. INVALID_ARGUMENT if their number does not show whether the first
  // row is a sample.
  absl::Status Number(const InputPart& part, std::vector<v1::Prediction>& predictions);

  // Returns the number of the next part's first sample.
  int64_t samples() const { return samples_; }

 private:
  int64_t samples_ = 0;
  // The rows of a part that are no samples: 1 if the first row names the columns.
  int64_t names_ = 0;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_COMMANDS_PREDICT_INPUTS_H_
