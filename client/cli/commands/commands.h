#ifndef TANDEM_CLIENT_CLI_COMMANDS_COMMANDS_H_
#define TANDEM_CLIENT_CLI_COMMANDS_COMMANDS_H_

#include "client/cli/command.h"
#include "client/cli/session.h"

namespace tandem::cli {

// Each function adds a command to the command line. If the command line names the command, it runs with the
// session and sets `exit_code`. All three arguments must outlive the parsing.
void AddSubmit(Command app, Session& session, int& exit_code);
void AddValidate(Command app, Session& session, int& exit_code);
void AddInit(Command app, Session& session, int& exit_code);
void AddSchema(Command app, Session& session, int& exit_code);
void AddSweep(Command app, Session& session, int& exit_code);
void AddList(Command app, Session& session, int& exit_code);
void AddDescribe(Command app, Session& session, int& exit_code);
void AddEvaluate(Command app, Session& session, int& exit_code);
void AddPredict(Command app, Session& session, int& exit_code);
void AddWatch(Command app, Session& session, int& exit_code);
void AddLogs(Command app, Session& session, int& exit_code);
void AddDownload(Command app, Session& session, int& exit_code);
void AddExport(Command app, Session& session, int& exit_code);
void AddTensorBoard(Command app, Session& session, int& exit_code);
void AddCancel(Command app, Session& session, int& exit_code);
void AddPause(Command app, Session& session, int& exit_code);
void AddResume(Command app, Session& session, int& exit_code);
void AddCheckpoints(Command app, Session& session, int& exit_code);
void AddFork(Command app, Session& session, int& exit_code);
void AddDelete(Command app, Session& session, int& exit_code);
void AddPriority(Command app, Session& session, int& exit_code);
void AddQueue(Command app, Session& session, int& exit_code);
void AddDashboard(Command app, Session& session, int& exit_code);
void AddTokens(Command app, Session& session, int& exit_code);
void AddDevices(Command app, Session& session, int& exit_code);
void AddDatasets(Command app, Session& session, int& exit_code);
void AddBackup(Command app, Session& session, int& exit_code);
void AddDoctor(Command app, Session& session, int& exit_code);
void AddShutdown(Command app, Session& session, int& exit_code);
void AddVersion(Command app, Session& session, int& exit_code);
void AddCompletion(Command app, Session& session, int& exit_code);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_COMMANDS_COMMANDS_H_
