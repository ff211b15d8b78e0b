#ifndef TANDEM_SERVER_STORE_MIGRATOR_H_
#define TANDEM_SERVER_STORE_MIGRATOR_H_

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace tandem {

class Connection;

// One step of the schema, from the folder migrations/.
struct Migration {
  // "0001_what_it_does.sql"; the number is the version that the schema has after it.
  const char* name;
  const char* sql;
};

// All of this program's, in order, from version 1 without gaps.
absl::Span<const Migration> Migrations();

// Brings the schema (pragma user_version; 0 for a new database) to the newest of `migrations`, all steps in
// one transaction. FAILED_PRECONDITION: it is newer than that.
absl::Status Migrate(Connection* connection, absl::Span<const Migration> migrations);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_MIGRATOR_H_
