#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/table.h"

namespace tandem::cli {
namespace {

std::string Id(const v1::Dataset& dataset) { return dataset.name().substr(dataset.name().find('/') + 1); }

int Run(Session& session) {
  const absl::StatusOr<client::Client*> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status());
  absl::StatusOr<std::vector<v1::Dataset>> datasets = (*client)->ListDatasets();
  if (!datasets.ok()) return session.Fail(datasets.status());
  for (v1::Dataset& dataset : *datasets) session.MakeShowable(&dataset);
  if (session.structured()) {
    session.terminal().Out(Structured(session.options.output, Pointers(*datasets)));
    return kSucceeded;
  }
  if (datasets->empty()) {
    session.terminal().Out(
        "no data sets; a folder of IDX files in one of the daemon's data folders makes one\n");
    return kSucceeded;
  }
  std::vector<Table::Column> columns = {
      {"DATA SET"}, {"SHAPE"}, {"CLASSES", true}, {"TRAIN", true}, {"VALIDATION", true}};
  if (session.wide()) columns.push_back({"LOCATION"});
  columns.push_back({"ABOUT"});
  Table table(columns);
  for (const v1::Dataset& dataset : *datasets) {
    std::vector<std::string> row = {Id(dataset), absl::StrJoin(dataset.shape(), "x"),
                                    absl::StrCat(dataset.classes()), FormatCount(dataset.train_samples()),
                                    FormatCount(dataset.validation_samples())};
    if (session.wide()) row.push_back(dataset.location());
    row.push_back(dataset.problem().empty() ? dataset.description()
                                            : session.style().Red("cannot be used: ") + dataset.problem());
    table.AddRow(std::move(row));
  }
  session.terminal().Out(table.Render(session.style()));
  return kSucceeded;
}

}  // namespace

void AddDatasets(CLI::App& app, Session& session, int& exit_code) {
  CLI::App* command = app.add_subcommand("datasets", "List the data sets that jobs can name");
  command->callback([&session, &exit_code] { exit_code = Run(session); });
}

}  // namespace tandem::cli
