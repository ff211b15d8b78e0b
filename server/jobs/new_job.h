#ifndef TANDEM_SERVER_JOBS_NEW_JOB_H_
#define TANDEM_SERVER_JOBS_NEW_JOB_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/store/transaction.h"

namespace tandem {

// How often a new id is tried. More than one is needed once in some million jobs of one name.
inline constexpr int kIdAttempts = 10;

// "lenet-k3v7qa", of a name or, where that is empty, of `otherwise`.
std::string NewId(const std::string& name, absl::string_view otherwise);

// RESOURCE_EXHAUSTED where the user would have more than `most` queued jobs with so many added; 0 is any
// number.
absl::Status CheckQueuedJobs(Transaction* transaction, const std::string& user, int added, int most);

// RESOURCE_EXHAUSTED where all users together would have more than `most` queued jobs with so many added to
// `queued`; 0 is any number. With a retry delay if the jobs may fit later.
absl::Status CheckQueueLength(int64_t queued, int64_t added, int64_t most);

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_NEW_JOB_H_
