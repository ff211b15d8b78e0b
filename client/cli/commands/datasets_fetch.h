#ifndef TANDEM_CLIENT_CLI_COMMANDS_DATASETS_FETCH_H_
#define TANDEM_CLIENT_CLI_COMMANDS_DATASETS_FETCH_H_

#include <string>

#include "client/cli/command.h"
#include "client/cli/session.h"

namespace tandem::cli {

// Adds `tandem datasets fetch`, as the functions of commands.h do. `datasets` is its parent command.
void AddDatasetsFetch(Command datasets, Session& session, int& exit_code);

// Lets the daemon fetch a public data set, waits, and reports the result. Returns the exit code.
int FetchKnownDataset(Session& session, const std::string& name);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_COMMANDS_DATASETS_FETCH_H_
