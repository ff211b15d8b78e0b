#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/print_table.h"

namespace tandem::cli {
namespace {

int CreateBackup(Session& session) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  absl::StatusOr<v1::Backup> backup = (*client)->CreateBackup();
  if (!backup.ok()) return session.Fail(backup.status());
  session.MakeShowable(&*backup);
  session.terminal().Out(session.structured() ? Structured(session.options.output, *backup)
                                              : absl::StrCat(backup->path(), "\n"));
  if (!session.structured()) {
    session.terminal().Err(absl::StrCat(FormatBytes(backup->size_bytes()),
                                        ", checked and on the disk; it is the database alone: also copy "
                                        "jobs/, uploads/ and kept-weights/\n"));
  }
  return kSucceeded;
}

int ListBackups(Session& session) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  return PrintTable(session, (*client)->ListBackups(), "no backups; `tandem backup` makes one\n",
                    {{"ID"}, {"AGE", true}, {"SIZE", true}, {"MADE BY"}, {"FILE"}},
                    [now = session.terminal().Now()](const v1::Backup& backup) -> std::vector<std::string> {
                      return {std::string(absl::StripPrefix(backup.name(), "backups/")),
                              FormatAge(now - FromProto(backup.create_time())),
                              FormatBytes(backup.size_bytes()), backup.automatic() ? "itself" : "hand",
                              backup.path()};
                    });
}

}  // namespace

void AddBackup(Command app, Session& session, int& exit_code) {
  const Command command = app.AddCommand(
      "backup", "Copy the daemon's database while it works, and print the copy's path; list the copies");
  command.Action([&session, &exit_code] { exit_code = CreateBackup(session); });
  command.AddCommand("create", "Make a backup (the default)").Action([&session, &exit_code] {
    exit_code = CreateBackup(session);
  });
  command.AddCommand("list", "List backups, newest first; `tandemd --restore-backup ID` restores one")
      .Action([&session, &exit_code] { exit_code = ListBackups(session); });
}

}  // namespace tandem::cli
