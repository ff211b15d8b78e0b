#include "server/store/database_check.h"

#include <sqlite3.h>

#include <functional>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

using Prepare = std::function<std::unique_ptr<SQLite::Statement>(const std::string& sql)>;

// Returns a description of the problems; empty if none. Throws like SQLiteCpp.
absl::StatusOr<std::string> FindProblems(const std::string& path, const Prepare& prepare, CheckDepth depth,
                                         const Interruption* interruption) {
  // For a readable file, SQLite gives a sentence per problem, with a limit.
  const auto check =
      prepare(depth == CheckDepth::kQuick ? "PRAGMA quick_check(3)" : "PRAGMA integrity_check(3)");
  std::string problems;
  while (check->executeStep()) {
    const std::string problem = check->getColumn(0).getString();
    if (problem != "ok") absl::StrAppend(&problems, problems.empty() ? "" : "; ", problem);
  }
  if (problems.empty() && depth == CheckDepth::kWhole) {
    const auto keys = prepare("PRAGMA foreign_key_check");
    if (keys->executeStep()) {
      problems =
          absl::StrCat("rows of ", keys->getColumn(0).getString(), " belong to rows that are not there");
    }
  }
  // An interrupted check reports unvisited pages as lost.
  if (interruption != nullptr && interruption->requested()) {
    return absl::CancelledError(absl::StrCat("cannot check ", path, ": the daemon is shutting down"));
  }
  return problems;
}

}  // namespace

absl::StatusOr<int64_t> CheckDatabase(const std::string& path, CheckDepth depth, Interruption* interruption) {
  return WithoutExceptions(absl::StrCat("check ", path), [&]() -> absl::StatusOr<int64_t> {
    // Opened for writing, because SQLite first applies the write-ahead log of a dead process.
    SQLite::Database database(path, SQLite::OPEN_READWRITE);
    std::optional<Interruption::Scope> scope;
    if (interruption != nullptr) scope.emplace(interruption, database.getHandle());
    const auto prepare = [&](const std::string& sql) {
      return std::make_unique<SQLite::Statement>(database, sql);
    };
    TANDEM_ASSIGN_OR_RETURN(const std::string problems, FindProblems(path, prepare, depth, interruption));
    if (!problems.empty()) return absl::DataLossError(absl::StrCat(path, " is damaged: ", problems));
    return database.execAndGet("PRAGMA user_version").getInt64();
  });
}

absl::Status CheckDatabaseInUse(Connection* connection, const Interruption& interruption) {
  const std::string& path = connection->path();
  const auto prepare = [&](const std::string& sql) { return connection->Prepare(sql); };
  return WithoutExceptions(absl::StrCat("check ", path), [&]() -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(const std::string problems,
                            FindProblems(path, prepare, CheckDepth::kWhole, &interruption));
    // Treat the problems like a read that found damage.
    if (!problems.empty()) throw SQLite::Exception(problems, SQLITE_CORRUPT);
    return absl::OkStatus();
  });
}

}  // namespace tandem
