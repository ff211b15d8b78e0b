#ifndef TANDEM_CLIENT_LIB_UPLOAD_PLAN_H_
#define TANDEM_CLIENT_LIB_UPLOAD_PLAN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem::client {

// A file of this machine for an upload.
struct LocalFile {
  // The path in the upload.
  std::string path;
  // The path on this machine.
  std::string local;
  int64_t size = 0;
  // The SHA-256, 32 bytes. Empty before ComputeDigests.
  std::string sha256;
};

// The files of an upload.
struct UploadPlan {
  // The files, in the order of their paths' bytes.
  std::vector<LocalFile> files;
  int64_t bytes = 0;
  // See tandem.v1.Upload. Empty before ComputeDigests.
  std::string manifest_sha256;
};

// A path in a data set's source.
struct NamedPath {
  // The path of the field, such as "csv.train".
  std::string field;
  // The value in the spec.
  std::string* path = nullptr;
};

// Returns the source's paths that are not empty. Only writing through the pointers keeps the other pointers
// valid.
std::vector<NamedPath> SourcePaths(v1::DatasetSpec* spec);

// Returns whether the path is a URL, which the daemon fetches itself.
bool IsUrl(absl::string_view path);

// Plans an upload of all files and folders of the source that are on this machine. Relative paths are
// searched for in `folder` ("": the working folder). The paths in the spec become paths in the upload,
// relative to the deepest folder that holds all files. URLs do not change. Absolute paths that do not exist
// here do not change: they are the daemon's. A folder gives the files of WalkDataFolder. A pattern of shards
// gives all its files. INVALID_ARGUMENT with a line for each problem: a relative path that does not exist, a
// file that cannot be read, a file name that no upload may have, or nothing to upload.
absl::StatusOr<UploadPlan> PlanUpload(const std::string& folder, v1::DatasetSpec* spec);

// Plans an upload of one file of this machine. Its path in the upload is its name. INVALID_ARGUMENT: there is
// no such file, it cannot be read, or no upload may have its name.
absl::StatusOr<UploadPlan> PlanFileUpload(const std::string& file);

// Computes the digests. Calls `on_bytes` with the number of bytes read so far. CANCELLED if `on_bytes`
// returns false. FAILED_PRECONDITION if a file cannot be read or has changed its size.
absl::Status ComputeDigests(const std::function<bool(int64_t bytes)>& on_bytes, UploadPlan* plan);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_UPLOAD_PLAN_H_
