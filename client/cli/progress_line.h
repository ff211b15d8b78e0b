#ifndef TANDEM_CLIENT_CLI_PROGRESS_LINE_H_
#define TANDEM_CLIENT_CLI_PROGRESS_LINE_H_

#include <string>

#include "absl/time/time.h"
#include "client/cli/job_progress.h"
#include "client/cli/style.h"

namespace tandem::cli {

// Returns a bar of `width` columns, filled by a share: "━━━━━╸────", or "#####-----" without Unicode.
std::string ProgressBar(double fraction, int width, bool unicode, const Style& style);

// Returns a line about a job, at most `width` columns. While the job trains, the line has a bar, epoch,
// share, time left, loss, accuracy, rate and step, and drops the last facts that do not fit. Before training,
// it has the reason for waiting. `now` is this machine's time.
std::string ProgressLine(const JobProgress& job, absl::Time now, int width, bool unicode, const Style& style);

// Returns the same facts as text, for a file: "epoch 2/3  step 633/1,407 (45%)  loss 0.3910  acc 0.8590 ...".
std::string PlainProgress(const JobProgress& job, absl::Time now);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_PROGRESS_LINE_H_
