#ifndef TANDEM_SERVER_STORE_DATABASE_CHECK_H_
#define TANDEM_SERVER_STORE_DATABASE_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/connection.h"
#include "server/store/interruption.h"

namespace tandem {

enum class CheckDepth {
  kQuick,  // Every page, but not the agreement of indices with tables.
  kWhole,  // Also indices and references between rows; takes about twice the time.
};

// Reads a whole database file that nobody has open, and returns its schema's version. DATA_LOSS with the
// problems: the file is damaged or no database. CANCELLED: `interruption`, which may be null, was requested.
// Other errors: the file cannot be read.
absl::StatusOr<int64_t> CheckDatabase(const std::string& path, CheckDepth depth,
                                      Interruption* interruption = nullptr);

// Checks a database in use as kWhole, over one of its connections. `interruption` stops the check. IsDamage
// is true for the returned DATA_LOSS.
absl::Status CheckDatabaseInUse(Connection* connection, const Interruption& interruption);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_DATABASE_CHECK_H_
