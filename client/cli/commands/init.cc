#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/format.h"
#include "client/cli/templates.h"
#include "engine/base/spelling.h"
#include "proto/job_file/scalar_text.h"
#include "proto/schema/schema_texts.h"

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kSchemaName[] = "job.schema.json";

// Makes the user's copy of the schema current. Returns the copy's path, or "" if there can be no copy.
std::string KeepSchema(Session& session) {
  const std::string home = session.terminal().Environment("HOME").value_or("");
  const std::string data = session.terminal().Environment("XDG_DATA_HOME").value_or("");
  if (home.empty() && data.empty()) return "";
  const fs::path folder = (data.empty() ? fs::path(home) / ".local/share" : fs::path(data)) / "tandem";
  const fs::path path = folder / kSchemaName;
  if (!path.is_absolute()) return "";
  std::ostringstream present;
  present << std::ifstream(path).rdbuf();
  if (present.str() == JobFileSchema()) return path;
  std::error_code error;
  fs::create_directories(folder, error);
  // An editor that reads the file meanwhile has the old text or the new one.
  const fs::path written = absl::StrCat(path.string(), ".new");
  std::ofstream file(written);
  file << JobFileSchema() << std::flush;
  if (file.good()) fs::rename(written, path, error);
  return file.good() && !error ? path.string() : "";
}

// The comment by which editors find the schema of job files. The schema is installed beside the programs, or
// copied into the user's data folder.
std::string SchemaLine(Session& session) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  std::string path = (program.parent_path().parent_path() / "share/tandem" / kSchemaName).string();
  if (!fs::exists(path, error)) path = KeepSchema(session);
  // Editors read the line up to a space, and a '#' as the begin of a place in the file.
  if (path.empty() || path.find_first_of(" \t#") != std::string::npos) return "";
  return absl::StrCat("# yaml-language-server: $schema=", path, "\n");
}

int RunInit(Session& session, const std::string& name) {
  std::vector<std::string> names;
  for (const JobTemplate& job : JobTemplates()) {
    if (job.name == name) {
      session.terminal().Out(absl::StrCat(SchemaLine(session), job.content));
      return kSucceeded;
    }
    names.emplace_back(job.name);
  }
  if (!name.empty()) {
    return session.Fail(absl::InvalidArgumentError(
        absl::StrCat("unknown template ", Quoted(name), "; ", SpellingHint(name, names))));
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
  command.AddOption("TEMPLATE", *name, "The template (default: list all)");
  command.Action([name, &session, &exit_code] { exit_code = RunInit(session, *name); });
}

}  // namespace tandem::cli
