#ifndef TANDEM_CLIENT_CLI_PRINT_TABLE_H_
#define TANDEM_CLIENT_CLI_PRINT_TABLE_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/session.h"
#include "client/cli/table.h"

namespace tandem::cli {

// Prints a list of the daemon's objects as JSON or YAML, or as a table: `row` returns an object's cells.
// Prints `none` instead of an empty table. Returns the exit code.
template <typename Object, typename Row>
int PrintTable(Session& session, absl::StatusOr<std::vector<Object>> list, absl::string_view none,
               std::vector<Table::Column> columns, const Row& row) {
  if (!list.ok()) return session.Fail(list.status());
  for (Object& object : *list) session.MakeShowable(&object);
  if (session.structured()) return session.PrintList(*list);
  if (list->empty()) {
    session.terminal().Out(none);
    return kSucceeded;
  }
  Table table(std::move(columns));
  for (const Object& object : *list) table.AddRow(row(object));
  session.terminal().Out(table.Render(session.style()));
  return kSucceeded;
}

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_PRINT_TABLE_H_
