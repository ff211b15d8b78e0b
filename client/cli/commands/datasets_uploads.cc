#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/datasets.h"
#include "client/cli/format.h"
#include "client/cli/print_table.h"

namespace tandem::cli {
namespace {

int List(Session& session, client::Client& client) {
  const auto row = [now = session.terminal().Now()](const v1::Upload& upload) -> std::vector<std::string> {
    return {ShortName(upload.name()), upload.user(), FormatCount(upload.files()), FormatBytes(upload.bytes()),
            FormatBytes(upload.bytes_received()),
            absl::StrCat(FormatAge(now - FromProto(upload.create_time())), " ago"),
            // The upload is from before the database was restored, and may have become a data set since.
            upload.has_expire_time() ? FormatAge(FromProto(upload.expire_time()) - now)
                                     : "ever: from before the database was restored"};
  };
  return PrintTable(
      session, client.ListUploads(), "no unfinished uploads\n",
      {{"UPLOAD"}, {"USER"}, {"FILES", true}, {"SIZE", true}, {"THERE", true}, {"BEGUN"}, {"KEPT FOR"}}, row);
}

int RunDatasetsUploads(Session& session, const std::vector<std::string>& removed) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  if (removed.empty()) return List(session, **client);
  int code = kSucceeded;
  for (const std::string& upload : removed) {
    const absl::Status status = (*client)->DeleteUpload(
        absl::StartsWith(upload, "uploads/") ? upload : absl::StrCat("uploads/", upload));
    if (!status.ok()) {
      code = session.Fail(status);
    } else if (!session.structured()) {
      session.terminal().Out(absl::StrCat(upload, " removed\n"));
    }
  }
  return code;
}

}  // namespace

void AddDatasetsUploads(Command datasets, Session& session, int& exit_code) {
  auto removed = std::make_shared<std::vector<std::string>>();
  const Command command = datasets.AddCommand("uploads",
                                              "List uploads without a data set, or remove them (--remove); "
                                              "they can continue, and expire after some days");
  command.AddOption("--remove", *removed, "Remove these uploads and their files").ValueName("UPLOAD");
  command.Action([removed, &session, &exit_code] { exit_code = RunDatasetsUploads(session, *removed); });
}

}  // namespace tandem::cli
