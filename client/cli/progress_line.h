#ifndef TANDEM_CLIENT_CLI_PROGRESS_LINE_H_
#define TANDEM_CLIENT_CLI_PROGRESS_LINE_H_

#include <string>

#include "absl/time/time.h"
#include "client/cli/job_progress.h"
#include "client/cli/style.h"

namespace tandem::cli {

// A bar of so many columns of which a share is filled: "━━━━━╸────", or "#####-----" where there is no
// Unicode.
std::string ProgressBar(double fraction, int width, bool unicode, const Style& style);

// One line about a job, at most `width` columns: a bar with epoch, share, time left, loss, accuracy, rate and
// step while it trains, what does not fit left out from the end; a word about what it waits for before that.
// `now` is this machine's.
std::string ProgressLine(const JobProgress& job, absl::Time now, int width, bool unicode, const Style& style);

// The same facts as plain words, for a file: "epoch 2/3  step 633/1,407 (45%)  loss 0.3910  acc 0.8590 ...".
std::string PlainProgress(const JobProgress& job, absl::Time now);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_PROGRESS_LINE_H_
