#ifndef TANDEM_SERVER_JOBS_NEW_JOB_H_
#define TANDEM_SERVER_JOBS_NEW_JOB_H_

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

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_NEW_JOB_H_
