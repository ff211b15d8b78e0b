#ifndef TANDEM_SERVER_FETCH_DOWNLOAD_H_
#define TANDEM_SERVER_FETCH_DOWNLOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/env.h"
#include "server/fetch/backoff.h"
#include "server/fetch/origin.h"
#include "tandem/internal/v1/cache.pb.h"

namespace tandem {

// A file to download.
struct DownloadRequest {
  // The file's path. The file appears there whole and synced, or not at all. Until then, ".<name>.part" in
  // its folder holds the received bytes and ".<name>.json" their version. A later download to the same path
  // continues the part.
  std::string path;
  // The required SHA-256: 64 lower-case hexadecimal digits. Empty: any content.
  std::string sha256;
  // Bytes that are already reserved.
  int64_t reserved = 0;
  // The version that the cache has. If still current, nothing is downloaded. Null: none.
  const internal::v1::CacheFile* known = nullptr;
};

// The functions that a download uses, on its own thread. They must outlive the download.
struct DownloadContext {
  Env* env = nullptr;
  // Reserves this many more bytes. An error ends the download.
  std::function<absl::Status(int64_t bytes)> reserve;
  // Blocks for the duration. Returns false if the daemon stops.
  std::function<bool(absl::Duration)> sleep;
  // Reports the received bytes and the file's size; 0 if unknown.
  std::function<void(int64_t done, int64_t total)> progress;
};

// Downloads a file. Retries temporary errors, continues a broken transfer, and restarts if the file changed
// meanwhile. Returns the file's facts except its name and time of change. Returns nullopt if the known
// version is still current.
//
// Messages of errors complete a sentence that begins with a field's name, except the system's errors.
// INVALID_ARGUMENT: the file cannot be downloaded after several tries, or has another checksum.
// RESOURCE_EXHAUSTED: no room. CANCELLED: the daemon stops. PERMISSION_DENIED as Origin::Get.
absl::StatusOr<std::optional<internal::v1::CacheFile>> Download(Origin& origin,
                                                                const DownloadRequest& request,
                                                                const RetryPolicy& retry,
                                                                const DownloadContext& context);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_DOWNLOAD_H_
