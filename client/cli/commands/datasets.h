#ifndef TANDEM_CLIENT_CLI_COMMANDS_DATASETS_H_
#define TANDEM_CLIENT_CLI_COMMANDS_DATASETS_H_

#include <string>

#include "client/cli/command.h"
#include "client/cli/session.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem::cli {

// Add the commands of `tandem datasets`, as the functions of commands.h do. `datasets` is the command `tandem
// datasets`.
void AddDatasetsAdd(Command datasets, Session& session, int& exit_code);
void AddDatasetsRemove(Command datasets, Session& session, int& exit_code);
void AddDatasetsUploads(Command datasets, Session& session, int& exit_code);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_COMMANDS_DATASETS_H_
