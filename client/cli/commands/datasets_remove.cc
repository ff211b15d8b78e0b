#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/commands/datasets.h"

namespace tandem::cli {
namespace {

struct DatasetsRemoveOptions {
  std::vector<std::string> names;
  bool missing_ok = false;
};

int RunDatasetsRemove(Session& session, const DatasetsRemoveOptions& options) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  std::vector<v1::Dataset> removed;
  int code = kSucceeded;
  for (const std::string& name : options.names) {
    v1::DeleteDatasetRequest request;
    request.set_name(name);
    request.set_allow_missing(options.missing_ok);
    if (const absl::Status status = (*client)->DeleteDataset(request); !status.ok()) {
      code = session.Fail(status);
      // The next calls would fail in the same way.
      if (code == kNoDaemon) break;
      continue;
    }
    const std::string id(absl::StripPrefix(name, "datasets/"));
    if (!session.structured()) session.terminal().Out(absl::StrCat(id, " removed\n"));
    removed.emplace_back().set_name(absl::StrCat("datasets/", id));
  }
  if (session.structured()) session.PrintList(removed);
  return code;
}

}  // namespace

void AddDatasetsRemove(Command datasets, Session& session, int& exit_code) {
  auto options = std::make_shared<DatasetsRemoveOptions>();
  const Command command =
      datasets.AddCommand("remove", "Remove registered data sets and their uploaded files");
  command.Alias("rm").Alias("delete");
  command.AddOption("SET", options->names, "The data sets' names").Required();
  command.AddFlag("--missing-ok", options->missing_ok, "Ignore names without a data set");
  command.Action([options, &session, &exit_code] { exit_code = RunDatasetsRemove(session, *options); });
}

}  // namespace tandem::cli
