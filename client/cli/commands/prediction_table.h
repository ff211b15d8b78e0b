#ifndef TANDEM_CLIENT_CLI_COMMANDS_PREDICTION_TABLE_H_
#define TANDEM_CLIENT_CLI_COMMANDS_PREDICTION_TABLE_H_

#include <string>
#include <vector>

#include "client/cli/style.h"
#include "tandem/v1/prediction.pb.h"

namespace tandem::cli {

// Returns a table for people. Columns that are empty for all predictions are left out.
std::string PredictionTable(const std::vector<v1::Prediction>& predictions, const Style& style);

// Predictions as a CSV table with all digits (RFC 4180). Holds only the table's text, because a table may
// have millions of rows. A network's output has a column for each number. Samples of a data set have no
// column "input"; they have columns for the true class or the targets.
class PredictionCsv {
 public:
  // Appends the predictions of a call. The first call chooses the columns: the predictions of a model have
  // equal numbers of classes, targets and outputs.
  void Add(const std::vector<v1::Prediction>& predictions);

  const std::string& text() const { return text_; }

 private:
  void Begin(const std::vector<v1::Prediction>& predictions);

  bool has_input_ = false;
  bool has_true_class_ = false;
  int classes_ = 0;
  int targets_ = 0;
  int outputs_ = 0;
  std::string text_;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_COMMANDS_PREDICTION_TABLE_H_
