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
  kQuick,  // Every page, but not whether indices agree with their tables.
  kWhole,  // That too, at about twice the time.
};

// Reads all of a database file that nobody has open and says what is wrong with it. The schema's version
// where nothing is. DATA_LOSS: it is damaged, or no database; CANCELLED: `interruption`, which may be null,
// came; others: it cannot be read.
absl::StatusOr<int64_t> CheckDatabase(const std::string& path, CheckDepth depth,
                                      Interruption* interruption = nullptr);

// Likewise, of one that is in use, by one of its connections, which `interruption` stops. IsDamage is true of
// DATA_LOSS.
absl::Status CheckDatabaseInUse(Connection* connection, const Interruption& interruption);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_DATABASE_CHECK_H_
