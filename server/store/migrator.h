#ifndef TANDEM_SERVER_STORE_MIGRATOR_H_
#define TANDEM_SERVER_STORE_MIGRATOR_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace tandem {

class Connection;

// A step of the schema, from the folder migrations/.
struct Migration {
  // For example "0001_what_it_does.sql". The number is the schema's version after the step.
  const char* name;
  const char* sql;
};

// Returns all steps of this program, in order, from version 1 without gaps.
absl::Span<const Migration> Migrations();

// FAILED_PRECONDITION if a newer program wrote the database at `path`, which has the schema `version`.
absl::Status CheckNotNewer(const std::string& path, int64_t version, absl::Span<const Migration> migrations);

// Migrates the schema (pragma user_version; 0 for a new database) to the newest version in `migrations`, with
// all steps in one transaction. FAILED_PRECONDITION: the schema is newer.
absl::Status Migrate(Connection* connection, absl::Span<const Migration> migrations);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_MIGRATOR_H_
