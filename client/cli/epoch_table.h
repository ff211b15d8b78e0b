#ifndef TANDEM_CLIENT_CLI_EPOCH_TABLE_H_
#define TANDEM_CLIENT_CLI_EPOCH_TABLE_H_

#include <string>

#include "absl/types/optional.h"
#include "client/cli/style.h"
#include "tandem/v1/event.pb.h"

namespace tandem::cli {

// A table of epochs that grows row by row, so its columns have fixed widths. A narrow terminal loses the last
// columns. Not thread-safe.
class EpochTable {
 public:
  explicit EpochTable(const Style& style) : style_(style) {}

  // Returns the row, with the headings before the first row. Lines end with a newline. A colour marks the
  // best validation metric so far.
  std::string Row(const v1::EpochSummary& epoch, int width);

 private:
  const Style style_;
  bool began_ = false;
  absl::optional<double> best_;
};

// Returns an epoch as a line of text, for a file: "epoch 1/3  train loss 0.5432  train acc 0.8012  val loss
// ...  4.87 s 13,333 samples/s ...".
std::string PlainEpoch(const v1::EpochSummary& epoch);
// Returns a validation within an epoch as a line of text.
std::string PlainValidation(const v1::ValidationResult& result);
// Returns measured loads as a line of text: "loads from step 14: cpu:0 1 (812 samples/s), cpu:1 0.5 (403
// samples/s)".
std::string PlainWorkerLoads(const v1::WorkerLoads& loads);
// Returns a notice as a single line. Line feeds and tabs become "\n" and "\t", so that a worker's text cannot
// look like a line of this program.
std::string PlainNotice(const v1::Notice& notice);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_EPOCH_TABLE_H_
