#ifndef TANDEM_CLIENT_CLI_COMMANDS_COMMANDS_H_
#define TANDEM_CLIENT_CLI_COMMANDS_COMMANDS_H_

#include "client/cli/session.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tandem::cli {

// Each adds a command to the command line. When the command is chosen it runs with the session and leaves its
// exit code in `exit_code`; all three must outlive the parsing.
void AddSubmit(CLI::App& app, Session& session, int& exit_code);
void AddValidate(CLI::App& app, Session& session, int& exit_code);
void AddInit(CLI::App& app, Session& session, int& exit_code);
void AddSweep(CLI::App& app, Session& session, int& exit_code);
void AddList(CLI::App& app, Session& session, int& exit_code);
void AddDescribe(CLI::App& app, Session& session, int& exit_code);
void AddEvaluate(CLI::App& app, Session& session, int& exit_code);
void AddPredict(CLI::App& app, Session& session, int& exit_code);
void AddWatch(CLI::App& app, Session& session, int& exit_code);
void AddLogs(CLI::App& app, Session& session, int& exit_code);
void AddDownload(CLI::App& app, Session& session, int& exit_code);
void AddCancel(CLI::App& app, Session& session, int& exit_code);
void AddPause(CLI::App& app, Session& session, int& exit_code);
void AddResume(CLI::App& app, Session& session, int& exit_code);
void AddCheckpoints(CLI::App& app, Session& session, int& exit_code);
void AddFork(CLI::App& app, Session& session, int& exit_code);
void AddDelete(CLI::App& app, Session& session, int& exit_code);
void AddPriority(CLI::App& app, Session& session, int& exit_code);
void AddQueue(CLI::App& app, Session& session, int& exit_code);
void AddTokens(CLI::App& app, Session& session, int& exit_code);
void AddDevices(CLI::App& app, Session& session, int& exit_code);
void AddDatasets(CLI::App& app, Session& session, int& exit_code);
void AddBackup(CLI::App& app, Session& session, int& exit_code);
void AddDoctor(CLI::App& app, Session& session, int& exit_code);
void AddShutdown(CLI::App& app, Session& session, int& exit_code);
void AddVersion(CLI::App& app, Session& session, int& exit_code);
void AddCompletion(CLI::App& app, Session& session, int& exit_code);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_COMMANDS_COMMANDS_H_
