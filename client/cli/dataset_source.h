#ifndef TANDEM_CLIENT_CLI_DATASET_SOURCE_H_
#define TANDEM_CLIENT_CLI_DATASET_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem::cli {

// Returns whether a word on the command line is a file rather than a name: the file exists, the word has a
// slash, or it has the extension of a job file.
bool NamesFile(const std::string& word);

// Returns a data set by its name on the daemon, or from a file.
absl::StatusOr<v1::DatasetSpec> FindDataset(const std::string& name_or_file);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_DATASET_SOURCE_H_
