#ifndef TANDEM_CLIENT_CLI_COMMANDS_DATASETS_H_
#define TANDEM_CLIENT_CLI_COMMANDS_DATASETS_H_

#include <string>

#include "client/cli/command.h"
#include "client/cli/session.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem::cli {

// The commands under `tandem datasets`, as those of commands.h; `datasets` is that command.
void AddDatasetsAdd(Command datasets, Session& session, int& exit_code);
void AddDatasetsRemove(Command datasets, Session& session, int& exit_code);
void AddDatasetsUploads(Command datasets, Session& session, int& exit_code);

// "datasets/flowers" as "flowers".
std::string DatasetId(const v1::Dataset& dataset);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_COMMANDS_DATASETS_H_
