#ifndef TANDEM_CLIENT_CLI_EPOCH_TABLE_H_
#define TANDEM_CLIENT_CLI_EPOCH_TABLE_H_

#include <string>

#include "absl/types/optional.h"
#include "client/cli/style.h"
#include "tandem/v1/event.pb.h"

namespace tandem::cli {

// A table of epochs that grows by a row at a time, so its columns have fixed widths. Columns that a narrow
// terminal has no room for are left out from the end. Not thread-safe.
class EpochTable {
 public:
  explicit EpochTable(const Style& style) : style_(style) {}

  // The row, and the headings before the first. Lines end with a newline. The best validation metric so far
  // is marked by its colour.
  std::string Row(const v1::EpochSummary& epoch, int width);

 private:
  const Style style_;
  bool began_ = false;
  absl::optional<double> best_;
};

// One epoch in words, for a file: "epoch 1/3  train loss 0.5432  train acc 0.8012  val loss ...  4.87 s
// 13,333 images/s ...".
std::string PlainEpoch(const v1::EpochSummary& epoch);
// A validation within an epoch, likewise.
std::string PlainValidation(const v1::ValidationResult& result);
// Measured loads, likewise: "loads from step 14: cpu:0 1 (812 samples/s), cpu:1 0.5 (403 samples/s)".
std::string PlainWorkerLoads(const v1::WorkerLoads& loads);
// A notice's words as one line: line feeds and tabs are written out ("\n", "\t"), so that no worker says
// something that looks like a line of the command's own.
std::string PlainNotice(const v1::Notice& notice);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_EPOCH_TABLE_H_
