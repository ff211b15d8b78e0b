#ifndef TANDEM_CLIENT_CLI_DESCRIBED_MODEL_H_
#define TANDEM_CLIENT_CLI_DESCRIBED_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/session.h"

namespace tandem::cli {

// `tandem describe --model`: which network to show.
struct DescribedModel {
  // A template's name, a job file, or a job.
  std::string source;
  // A data set's name, or a file with one; empty: the job's own, or none.
  std::string dataset;
  std::vector<std::string> overrides;
  // 0: the job's, or 1.
  int64_t batch_size = 0;
};

// Shows the network and gives the exit code.
int DescribeModel(Session& session, const DescribedModel& wanted);

// Names of the templates that a model may have.
std::vector<std::string> ModelTemplateNames();

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_DESCRIBED_MODEL_H_
