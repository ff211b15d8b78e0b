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

// A file that is to come.
struct DownloadRequest {
  // Where it is to lie: it appears there whole and synced, or not at all. What comes lies in "<path>.part"
  // until then, and "<path>.json" says of what that is a part: a later download of the same path goes on from
  // there.
  std::string path;
  // 64 small hexadecimal digits that its SHA-256 must have; empty: any.
  std::string sha256;
  // Bytes for which there is room already; only what comes beyond them asks for more.
  int64_t reserved = 0;
  // The version that is here already; where the origin still has it, nothing comes. Null: none.
  const internal::v1::CacheFile* known = nullptr;
};

// What a download needs from its surroundings. All outlive it, and are called from its thread.
struct DownloadContext {
  Env* env = nullptr;
  // Makes room for so many bytes more; an error ends the download with this error.
  std::function<absl::Status(int64_t bytes)> reserve;
  // Waits; false: the daemon stops.
  std::function<bool(absl::Duration)> sleep;
  // Bytes that are here, and of the whole file (0: not known).
  std::function<void(int64_t done, int64_t total)> progress;
};

// Brings a file here: tries again what may work later, goes on where it was cut off, begins anew where the
// file has changed in the meantime. Gives what is known of the file, but for its name and its time of change;
// nothing where the known version is still the right one. Errors are in words that follow a field's name,
// unless they are the machine's own. INVALID_ARGUMENT: it is not to be had, not even after several tries, or
// its checksum is another. RESOURCE_EXHAUSTED: there is no room. CANCELLED: the daemon stops.
// PERMISSION_DENIED as Origin::Get's.
absl::StatusOr<std::optional<internal::v1::CacheFile>> Download(Origin& origin,
                                                                const DownloadRequest& request,
                                                                const RetryPolicy& retry,
                                                                const DownloadContext& context);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_DOWNLOAD_H_
