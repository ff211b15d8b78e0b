#ifndef TANDEM_CLIENT_CLI_COMMANDS_DATASETS_PACK_H_
#define TANDEM_CLIENT_CLI_COMMANDS_DATASETS_PACK_H_

#include "client/cli/command.h"
#include "client/cli/session.h"

namespace tandem::cli {

// Adds `tandem datasets pack`. It needs no daemon.
void AddDatasetsPack(Command datasets, Session& session, int& exit_code);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_COMMANDS_DATASETS_PACK_H_
