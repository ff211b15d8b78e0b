#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/table.h"

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
  absl::StatusOr<std::vector<v1::Backup>> backups = (*client)->ListBackups();
  if (!backups.ok()) return session.Fail(backups.status());
  for (v1::Backup& backup : *backups) session.MakeShowable(&backup);
  if (session.structured()) return session.PrintList(*backups);
  if (backups->empty()) {
    session.terminal().Out("no backups; `tandem backup` makes one\n");
    return kSucceeded;
  }
  Table table({{"ID"}, {"AGE", true}, {"SIZE", true}, {"MADE BY"}, {"FILE"}});
  const absl::Time now = session.terminal().Now();
  for (const v1::Backup& backup : *backups) {
    table.AddRow({std::string(absl::StripPrefix(backup.name(), "backups/")),
                  FormatAge(now - FromProto(backup.create_time())), FormatBytes(backup.size_bytes()),
                  backup.automatic() ? "itself" : "hand", backup.path()});
  }
  session.terminal().Out(table.Render(session.style()));
  return kSucceeded;
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
