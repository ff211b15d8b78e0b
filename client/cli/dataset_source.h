#ifndef TANDEM_CLIENT_CLI_DATASET_SOURCE_H_
#define TANDEM_CLIENT_CLI_DATASET_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem::cli {

// Whether a word on the command line means a file rather than a name: there is one, it has a slash, or it
// ends as job files do.
bool NamesFile(const std::string& word);

// The data set that a person means by the name of one that the daemon knows, or by a file with one.
absl::StatusOr<v1::DatasetSpec> FindDataset(const std::string& name_or_file);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_DATASET_SOURCE_H_
