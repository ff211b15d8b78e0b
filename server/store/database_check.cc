#include "server/store/database_check.h"

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/store/connection.h"

namespace tandem {

absl::StatusOr<int64_t> CheckDatabase(const std::string& path, CheckDepth depth) {
  return WithoutExceptions(absl::StrCat("check ", path), [&]() -> absl::StatusOr<int64_t> {
    // To write, as what a dead process left in the write-ahead log is carried over first.
    SQLite::Database database(path, SQLite::OPEN_READWRITE);
    // Of an otherwise good file, a sentence for each thing that is wrong, but not without end.
    SQLite::Statement check(
        database, depth == CheckDepth::kQuick ? "PRAGMA quick_check(3)" : "PRAGMA integrity_check(3)");
    std::string problems;
    while (check.executeStep()) {
      const std::string problem = check.getColumn(0).getString();
      if (problem != "ok") absl::StrAppend(&problems, problems.empty() ? "" : "; ", problem);
    }
    if (!problems.empty()) return absl::DataLossError(absl::StrCat(path, " is damaged: ", problems));
    if (depth == CheckDepth::kWhole) {
      SQLite::Statement keys(database, "PRAGMA foreign_key_check");
      if (keys.executeStep()) {
        return absl::DataLossError(absl::StrCat(path, " is damaged: rows of ", keys.getColumn(0).getString(),
                                                " belong to rows that are not there"));
      }
    }
    return database.execAndGet("PRAGMA user_version").getInt64();
  });
}

}  // namespace tandem
