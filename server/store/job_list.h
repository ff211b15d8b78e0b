#ifndef TANDEM_SERVER_STORE_JOB_LIST_H_
#define TANDEM_SERVER_STORE_JOB_LIST_H_

#include "absl/status/statusor.h"
#include "server/store/connection.h"
#include "server/store/records.h"

namespace tandem {

// A page of jobs, by Store::ListJobs's contract, in the connection's transaction. Throws as Query does.
absl::StatusOr<JobPage> ReadJobList(Connection* connection, const JobQuery& query);

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_JOB_LIST_H_
