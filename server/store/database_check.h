#ifndef TANDEM_SERVER_STORE_DATABASE_CHECK_H_
#define TANDEM_SERVER_STORE_DATABASE_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem {

enum class CheckDepth {
  kQuick,  // Every page, but not whether indices agree with their tables.
  kWhole,  // That too, at about twice the time.
};

// Reads all of a database file that nobody has open and says what is wrong with it. The schema's version
// where nothing is. DATA_LOSS: it is damaged, or no database; others: it cannot be read.
absl::StatusOr<int64_t> CheckDatabase(const std::string& path, CheckDepth depth);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_DATABASE_CHECK_H_
