#ifndef TANDEM_CLIENT_CLI_SWEEP_TABLE_H_
#define TANDEM_CLIENT_CLI_SWEEP_TABLE_H_

#include <string>
#include <vector>

#include "client/cli/style.h"
#include "tandem/v1/sweep.pb.h"

namespace tandem::cli {

// A sweep for people: where it stands, a row for each of its jobs with its values and what came of it, the
// best one marked. Lines end with a newline.
std::string SweepText(const v1::Sweep& sweep, const Style& style);

// The same without the errors, in lines of at most `width` columns for a terminal on which they are redrawn.
// If there are more jobs than fit `height` lines, rows of jobs that wait are left out first, then those of
// jobs that ended.
std::vector<std::string> SweepLines(const v1::Sweep& sweep, const Style& style, int width, int height);

// "3 succeeded, 1 running" of the jobs' states.
std::string CountsText(const v1::Sweep& sweep);

// A state's short name in its colour.
std::string ColoredSweepState(v1::SweepState state, const Style& style);

// What a search varies, by the last parts of the fields' names: "learning_rate=0.1, units=8".
std::string ValuesText(const v1::SweepResult& result);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_SWEEP_TABLE_H_
