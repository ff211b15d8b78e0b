#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/templates.h"
#include "engine/base/spelling.h"
#include "proto/job_file/scalar_text.h"

namespace tandem::cli {
namespace {

int RunInit(Session& session, const std::string& name) {
  std::vector<std::string> names;
  for (const JobTemplate& job : JobTemplates()) {
    if (job.name == name) {
      session.terminal().Out(job.content);
      return kSucceeded;
    }
    names.emplace_back(job.name);
  }
  if (!name.empty()) {
    return session.Fail(absl::InvalidArgumentError(
        absl::StrCat("no such template: ", Quoted(name), "; ", SpellingHint(name, names))));
  }
  for (const JobTemplate& job : JobTemplates()) {
    session.terminal().Out(absl::StrCat(PadRight(job.name, 13), job.description, "\n"));
  }
  session.terminal().Out("print one with: tandem init TEMPLATE > job.yaml\n");
  return kSucceeded;
}

}  // namespace

void AddInit(Command app, Session& session, int& exit_code) {
  auto name = std::make_shared<std::string>();
  const Command command = app.AddCommand("init", "Print a commented job file to start from");
  command.AddOption("TEMPLATE", *name, "Which; without one: list them");
  command.Action([name, &session, &exit_code] { exit_code = RunInit(session, *name); });
}

}  // namespace tandem::cli
