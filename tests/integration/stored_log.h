#ifndef TANDEM_TESTS_INTEGRATION_STORED_LOG_H_
#define TANDEM_TESTS_INTEGRATION_STORED_LOG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tandem/v1/event.pb.h"

namespace tandem::testing {

// Reads the events of a job ("jobs/<id>") by their sequence numbers from the database file. No daemon may use
// the file.
absl::StatusOr<std::vector<v1::JobEvent>> ReadStoredLog(const std::string& database_path,
                                                        const std::string& job);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_STORED_LOG_H_
