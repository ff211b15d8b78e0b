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
#include "server/fetch/s3.h"
#include "server/fetch/s3_config.h"

namespace tandem {

// A file to fetch for a URL.
struct PlannedFile {
  // Relative to the entry's folder.
  std::string path;
  // From a listing; -1 and empty if unknown. Without an etag, the file's server is asked for changes.
  int64_t size_bytes = -1;
  std::string etag;
};

// All files to fetch for a URL.
struct FetchPlan {
  bool folder = false;
  // Sorted by path.
  std::vector<PlannedFile> files;
  // Makes the origins of one of the files, in order: the first origin that has the file wins. They are not
  // kept for all files, because an address may be long. Thread-safe.
  using Origins = std::vector<std::unique_ptr<Origin>>;
  std::function<absl::StatusOr<Origins>(const PlannedFile& file)> origins_of;
};

// Finds the files of a URL. Thread-safe. The pointers must outlive it.
class FetchPlanner {
 public:
  // `sleep` blocks for a duration, and returns false if the daemon stops.
  FetchPlanner(const FetchPolicy* policy, Transport* transport, Environment environment, RetryPolicy retry,
               std::function<bool(absl::Duration)> sleep)
      : policy_(policy),
        transport_(transport),
        environment_(std::move(environment)),
        retry_(retry),
        sleep_(std::move(sleep)) {}

  // Returns the files of a URL. Reads the whole listing if the URL may be a folder. INVALID_ARGUMENT: a
  // listing has more than 2,000,000 objects, or paths and entity tags of more than 256 MiB together. Other
  // errors as Download and ExpandShardPattern.
  absl::StatusOr<FetchPlan> Plan(const DataUrl& url, PathKind kind) const;

  // Plans a public set's file that has several addresses.
  absl::StatusOr<FetchPlan> PlanFile(const std::string& name,
                                     const std::vector<std::string>& addresses) const;

 private:
  absl::StatusOr<FetchPlan> PlanS3(const DataUrl& url, PathKind kind) const;
  absl::StatusOr<std::shared_ptr<S3Bucket>> OpenBucket(const DataUrl& url) const;
  // Sorts the files by their paths. INVALID_ARGUMENT if a path names both a file and a folder.
  static absl::StatusOr<FetchPlan> Sorted(const DataUrl& url, FetchPlan plan);
  // Plans a folder with the shards of a pattern, without a listing.
  absl::StatusOr<FetchPlan> PlanPattern(const DataUrl& url) const;

  const FetchPolicy* const policy_;
  Transport* const transport_;
  const Environment environment_;
  const RetryPolicy retry_;
  const std::function<bool(absl::Duration)> sleep_;
};

// Returns the reason why a path from a listing is no valid file's path; empty if valid. The reason completes
// a sentence that begins with the path.
std::string WhyNoPath(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_FETCH_PLAN_H_
