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

// A file of this machine that is to be uploaded.
struct LocalFile {
  // In the upload.
  std::string path;
  // Here.
  std::string local;
  int64_t size = 0;
  // 32 bytes, once it is computed.
  std::string sha256;
};

// What an upload consists of.
struct UploadPlan {
  // By the bytes of their paths.
  std::vector<LocalFile> files;
  int64_t bytes = 0;
  // See tandem.v1.Upload; once it is computed.
  std::string manifest_sha256;
};

// A path in a data set's source.
struct NamedPath {
  // Such as "csv.train".
  std::string field;
  // In the spec.
  std::string* path = nullptr;
};

// The paths of the source that are not empty; valid until the spec is changed otherwise.
std::vector<NamedPath> SourcePaths(v1::DatasetSpec* spec);

// Whether it is a URL, which the daemon fetches by itself.
bool IsUrl(absl::string_view path);

// The files and folders that the source names, as far as they are on this machine; relative paths are looked
// for in `folder` ("": the working folder). In the spec their paths become those in the upload: relative to
// the deepest folder that holds all of them. URLs stay, as do absolute paths that are not here: these are the
// daemon's. A folder's files are those of WalkDataFolder. INVALID_ARGUMENT, with a
// line for each: a relative path that is not here, a file that cannot be read or whose name no upload can
// have; or there is nothing to upload.
absl::StatusOr<UploadPlan> PlanUpload(const std::string& folder, v1::DatasetSpec* spec);

// Computes the digests. `on_bytes` hears how many bytes were read so far, and says whether to go on.
// CANCELLED: not; FAILED_PRECONDITION: a file cannot be read, or has another size by now.
absl::Status ComputeDigests(const std::function<bool(int64_t bytes)>& on_bytes, UploadPlan* plan);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_UPLOAD_PLAN_H_
