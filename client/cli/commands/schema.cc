#include "client/cli/commands/commands.h"
#include "proto/schema/schema_texts.h"

namespace tandem::cli {

void AddSchema(Command app, Session& session, int& exit_code) {
  auto kind = std::make_shared<std::string>("job");
  const Command command = app.AddCommand("schema", "Print the JSON Schema by which editors check job files");
  command.AddOption("KIND", *kind, "job or sweep (default: job)").OneOf({"job", "sweep"});
  command.Action([kind, &session, &exit_code] {
    session.terminal().Out(*kind == "job" ? JobFileSchema() : SweepFileSchema());
    exit_code = kSucceeded;
  });
}

}  // namespace tandem::cli
