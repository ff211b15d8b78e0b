#ifndef TANDEM_CLIENT_CLI_COMMANDS_DATASETS_FETCH_H_
#define TANDEM_CLIENT_CLI_COMMANDS_DATASETS_FETCH_H_

#include <string>

#include "client/cli/command.h"
#include "client/cli/session.h"

namespace tandem::cli {

// `tandem datasets fetch`, as the commands of commands.h; `datasets` is the command above it.
void AddDatasetsFetch(Command datasets, Session& session, int& exit_code);

// Has the daemon bring a public set, waits for it, says so, and gives the exit code.
int FetchKnownDataset(Session& session, const std::string& name);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_COMMANDS_DATASETS_FETCH_H_
