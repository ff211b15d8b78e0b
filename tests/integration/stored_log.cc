#include "tests/integration/stored_log.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tandem::testing {

absl::StatusOr<std::vector<v1::JobEvent>> ReadStoredLog(const std::string& database_path,
                                                        const std::string& job) {
  std::vector<v1::JobEvent> events;
  try {
    // Not read-only: after a crash the log of the database is played back first.
    SQLite::Database database(database_path, SQLite::OPEN_READWRITE);
    SQLite::Statement query(
        database,
        "SELECT events.sequence, events.event FROM events JOIN jobs ON jobs.number = events.job "
        "WHERE jobs.id = ? ORDER BY events.sequence");
    query.bind(1, std::string(absl::StripPrefix(job, "jobs/")));
    while (query.executeStep()) {
      v1::JobEvent& event = events.emplace_back();
      const std::string bytes = query.getColumn(1).getString();
      if (!event.ParseFromString(bytes)) return absl::DataLossError("an event cannot be parsed");
      // The row has the sequence number as its key, and the message may lack it.
      if (event.sequence() == 0) event.set_sequence(query.getColumn(0).getInt64());
      if (event.sequence() != query.getColumn(0).getInt64()) {
        return absl::DataLossError(
            absl::StrCat("event ", query.getColumn(0).getInt64(), " calls itself ", event.sequence()));
      }
      if (event.job().empty()) event.set_job(job);
    }
  } catch (const SQLite::Exception& error) {
    return absl::InternalError(absl::StrCat(database_path, ": ", error.what()));
  }
  return events;
}

}  // namespace tandem::testing
