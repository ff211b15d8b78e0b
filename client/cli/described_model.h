#ifndef TANDEM_CLIENT_CLI_DESCRIBED_MODEL_H_
#define TANDEM_CLIENT_CLI_DESCRIBED_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/session.h"

namespace tandem::cli {

// The arguments of `tandem describe --model`.
struct DescribedModel {
  // The name of a template, a job file, or a job.
  std::string source;
  // The name of a data set, or a file with a data set. Empty: the job's data set, or none.
  std::string dataset;
  std::vector<std::string> overrides;
  // Samples in a batch. 0: the job's batch size, or 1.
  int64_t batch_size = 0;
};

// Shows the network. Returns the exit code.
int DescribeModel(Session& session, const DescribedModel& wanted);

// Returns the names of all templates of models.
std::vector<std::string> ModelTemplateNames();

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_DESCRIBED_MODEL_H_
