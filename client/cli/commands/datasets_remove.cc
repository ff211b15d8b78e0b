#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/change_each.h"
#include "client/cli/commands/datasets.h"
#include "client/cli/format.h"

namespace tandem::cli {
namespace {

struct DatasetsRemoveOptions {
  std::vector<std::string> names;
  bool missing_ok = false;
};

int RunDatasetsRemove(Session& session, const DatasetsRemoveOptions& options) {
  return ChangeEach<v1::Dataset>(
      session, options.names,
      [&](client::Client& client, const std::string& name) -> absl::StatusOr<v1::Dataset> {
        v1::DeleteDatasetRequest request;
        request.set_name(name);
        request.set_allow_missing(options.missing_ok);
        if (absl::Status status = client.DeleteDataset(request); !status.ok()) return status;
        v1::Dataset removed;
        removed.set_name(absl::StrCat("datasets/", absl::StripPrefix(name, "datasets/")));
        return removed;
      },
      [](const v1::Dataset& removed) { return absl::StrCat(ShortName(removed.name()), " removed"); });
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
