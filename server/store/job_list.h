#ifndef TANDEM_SERVER_STORE_JOB_LIST_H_
#define TANDEM_SERVER_STORE_JOB_LIST_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/store/connection.h"
#include "server/store/records.h"

namespace tandem {

// Returns the statement that reads a page. ?1 is the number of rows. With a page token, ?2 (and ?3 in the
// order of creation) is the last job of the previous page. Public for tests.
std::string JobListStatement(const JobQuery& query);

// Reads a page as Store::ListJobs, in the connection's transaction. Throws like Query.
absl::StatusOr<JobPage> ReadJobList(Connection* connection, const JobQuery& query);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_JOB_LIST_H_
