#ifndef TANDEM_SERVER_STORE_JOB_LIST_H_
#define TANDEM_SERVER_STORE_JOB_LIST_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/store/connection.h"
#include "server/store/records.h"

namespace tandem {

// The statement that reads a page: ?1 is how many rows, and with a page token ?2, in the order of creation ?3
// too, the last job of the page before. It is for tests to look at.
std::string JobListStatement(const JobQuery& query);

// A page of jobs, by Store::ListJobs's contract, in the connection's transaction. Throws as Query does.
absl::StatusOr<JobPage> ReadJobList(Connection* connection, const JobQuery& query);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_JOB_LIST_H_
