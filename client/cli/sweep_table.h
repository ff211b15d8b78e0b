#ifndef TANDEM_CLIENT_CLI_SWEEP_TABLE_H_
#define TANDEM_CLIENT_CLI_SWEEP_TABLE_H_

#include <string>
#include <vector>

#include "client/cli/style.h"
#include "tandem/v1/sweep.pb.h"

namespace tandem::cli {

// Returns a sweep as text: its state, a row for each job with its values and its result, and the errors of
// failed jobs. A star marks the best job. Lines end with a newline.
std::string SweepText(const v1::Sweep& sweep, const Style& style);

// Returns the text of a sweep without errors, in lines of at most `width` columns, for a terminal that
// redraws them. If the text needs more than `height` lines, leaves out rows of waiting jobs first, then rows
// of ended jobs.
std::vector<std::string> SweepLines(const v1::Sweep& sweep, const Style& style, int width, int height);

// Returns the number of jobs in each state: "3 succeeded, 1 running".
std::string CountsText(const v1::Sweep& sweep);

// Returns a state's short name in its colour.
std::string ColoredSweepState(v1::SweepState state, const Style& style);

// Returns the state of a sweep's job in its colour. "pruned" stands for a job that Sweep.pruning ended.
std::string ColoredResultState(const v1::SweepResult& result, const Style& style);

// Returns a job's values with short field names: "learning_rate=0.1, units=8".
std::string ValuesText(const v1::SweepResult& result);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_SWEEP_TABLE_H_
