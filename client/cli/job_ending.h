#ifndef TANDEM_CLIENT_CLI_JOB_ENDING_H_
#define TANDEM_CLIENT_CLI_JOB_ENDING_H_

#include <string>

#include "client/cli/job_progress.h"
#include "client/cli/style.h"

namespace tandem::cli {

// Returns the text at a job's end: its final state, its results, its files, and the next commands. Lines end
// with a newline. `id` is the job's id without "jobs/".
std::string JobEnding(const JobProgress& job, const std::string& id, const Style& style);

// Returns "3 epochs, 1,407 steps in 12.30 s (14,600 samples/s), validation 1.20 s".
std::string SummaryText(const v1::TrainingSummary& summary);
// Returns "validation loss 0.4211, in epoch 2 (step 938)".
std::string BestText(const v1::BestResult& best);

// Returns the text after BestText: the place of the weights with the best result. `kept`: an artifact has
// them.
std::string WhereBestWeightsAre(const v1::TrainingSummary& summary, bool kept);

// Returns whether a job's artifacts include the best weights.
template <typename Artifacts>
bool HasBestModel(const Artifacts& artifacts) {
  for (const v1::Artifact& artifact : artifacts) {
    if (artifact.name() == "best.safetensors") return true;
  }
  return false;
}

// Returns a state's short name in its colour.
std::string ColoredState(v1::JobState state, const Style& style);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_JOB_ENDING_H_
