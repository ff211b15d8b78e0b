#ifndef TANDEM_TESTS_INTEGRATION_STORED_LOG_H_
#define TANDEM_TESTS_INTEGRATION_STORED_LOG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tandem/v1/event.pb.h"

namespace tandem::testing {

// A job's ("jobs/<id>") events by their sequence numbers, read from the database file itself. No daemon may
// run on it.
absl::StatusOr<std::vector<v1::JobEvent>> ReadStoredLog(const std::string& database_path,
                                                        const std::string& job);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_STORED_LOG_H_
