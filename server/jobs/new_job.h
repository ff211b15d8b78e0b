#ifndef TANDEM_SERVER_JOBS_NEW_JOB_H_
#define TANDEM_SERVER_JOBS_NEW_JOB_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/store/transaction.h"

namespace tandem {

// The most tries for a new id. A second try happens once in some million jobs of one name.
inline constexpr int kIdAttempts = 10;

// Returns a new id such as "lenet-k3v7qa", made from `name` or, if that is empty, from `otherwise`.
std::string NewId(const std::string& name, absl::string_view otherwise);

// RESOURCE_EXHAUSTED if the user would have more than `most` queued jobs after adding `added`. 0: no limit.
absl::Status CheckQueuedJobs(Transaction* transaction, const std::string& user, int added, int most);

// RESOURCE_EXHAUSTED if all users would have more than `most` queued jobs after adding `added` to `queued`.
// 0: no limit. The error has a retry delay if the jobs may fit later.
absl::Status CheckQueueLength(int64_t queued, int64_t added, int64_t most);

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_NEW_JOB_H_
