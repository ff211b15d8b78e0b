#ifndef TANDEM_SERVER_FETCH_FETCH_PLAN_H_
#define TANDEM_SERVER_FETCH_FETCH_PLAN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/data/source_paths.h"
#include "server/fetch/backoff.h"
#include "server/fetch/data_url.h"
#include "server/fetch/fetch_policy.h"
#include "server/fetch/origin.h"
#include "server/fetch/s3_config.h"

namespace tandem {

// A file to fetch for a URL.
struct PlannedFile {
  // Relative to the folder of its entry.
  std::string path;
  // The first that has it counts.
  std::vector<std::unique_ptr<Origin>> origins;
  // As a listing gives them; -1 and empty: not known.
  int64_t size_bytes = -1;
  std::string etag;
};

// All that is to be fetched for a URL.
struct FetchPlan {
  bool folder = false;
  // In the order of their paths.
  std::vector<PlannedFile> files;
};

// Finds out what there is. Thread-safe; what it is given outlives it.
class FetchPlanner {
 public:
  // `sleep` waits; false: the daemon stops.
  FetchPlanner(const FetchPolicy* policy, Transport* transport, Environment environment, RetryPolicy retry,
               std::function<bool(absl::Duration)> sleep)
      : policy_(policy),
        transport_(transport),
        environment_(std::move(environment)),
        retry_(retry),
        sleep_(std::move(sleep)) {}

  // Reads listings where there is more than a file. A listing is gone through to its end before anything is
  // fetched. Errors as Download's.
  absl::StatusOr<FetchPlan> Plan(const DataUrl& url, PathKind kind) const;

  // A file of a public set, which lies at one of several addresses.
  absl::StatusOr<FetchPlan> PlanFile(const std::string& name,
                                     const std::vector<std::string>& addresses) const;

 private:
  absl::StatusOr<FetchPlan> PlanS3(const DataUrl& url, PathKind kind) const;

  const FetchPolicy* const policy_;
  Transport* const transport_;
  const Environment environment_;
  const RetryPolicy retry_;
  const std::function<bool(absl::Duration)> sleep_;
};

// Why a path from a listing must not become a file's, in words that follow it; empty where it may.
std::string WhyNoPath(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_FETCH_PLAN_H_
