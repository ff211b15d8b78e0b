#ifndef TANDEM_SERVER_ADMISSION_REMOTE_DATA_H_
#define TANDEM_SERVER_ADMISSION_REMOTE_DATA_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/data/source_paths.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// Whether a path in a data set's source is a URL ("https://...", "s3://..."), rather than a file's.
bool IsUrl(absl::string_view path);

// Whether a path of the source of `spec` is one. A name is not looked up.
bool NamesUrls(const v1::DatasetSpec& spec);

// The most memory that RemoteData's pinning of its URLs adds to `spec`.
size_t PinBytes(const v1::DatasetSpec& spec);

// How far a fetch is.
struct FetchProgress {
  int64_t bytes_done = 0;
  int64_t bytes_total = 0;  // 0: not known.
  int64_t files_done = 0;
  int64_t files_total = 0;  // 0: not known.
};

inline constexpr char kDataBeingFetched[] = "DATA_BEING_FETCHED";

// UNAVAILABLE with the reason kDataBeingFetched, which says how far it is, for people and for programs.
absl::Status DataBeingFetched(const FetchProgress& progress);

// An error of RemoteData whose fields are below `prefix`; its code, its reason and all else stay as they are.
absl::Status UnderField(absl::string_view prefix, const absl::Status& status);

// Brings near what data sets name by URLs, and keeps it in a cache. What a URL led to is pinned to it as
// "#sha256=<64 hexadecimal digits>", the content's or, for a folder, that of the listing of its contents; a
// pinned URL means these bytes and no others. Thread-safe.
class RemoteData {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<v1::DatasetSpec>)>;

  virtual ~RemoteData() = default;

  // Fetches for `user` what the source of `spec` names by URLs, unless the cache has it, and calls `done`
  // once, from any thread, perhaps before it returns; never blocks. It gives the spec with each URL pinned.
  // Where that takes longer than `wait`, DataBeingFetched: the fetch goes on, and a later call with the same
  // URLs joins it or gets its outcome. Other errors name the fields at fault, relative to the spec, in their
  // violations: INVALID_ARGUMENT with the reason FETCH_FAILED, for what is not there, is refused, or has
  // another checksum; PERMISSION_DENIED with FETCH_NOT_ALLOWED, where the daemon fetches nothing from there;
  // RESOURCE_EXHAUSTED with CACHE_FULL.
  virtual void Ensure(const v1::DatasetSpec& spec, const std::string& user, absl::Duration wait,
                      Done done) = 0;

  // The file or folder, by its absolute path, that Ensure fetched for a URL: of a pinned one that content, of
  // another the newest. Nothing is fetched, so it is for all who call. INVALID_ARGUMENT where the cache does
  // not have it, or it is of another kind. What was given is kept for some minutes at least,
  // and as long as a job that has not ended, or a registered data set, names it.
  virtual absl::StatusOr<std::string> LocalPath(const std::string& url, PathKind kind) const = 0;

  // Brings for `user` a public set that many know by `name` ("mnist") into the folder of such sets, from
  // where it is known to the catalog by that name, and calls `done` as Ensure does: OK when it is there.
  // NOT_FOUND: no such set.
  virtual void FetchPublicSet(const std::string& name, const std::string& user, absl::Duration wait,
                              absl::AnyInvocable<void(absl::Status)> done) = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_REMOTE_DATA_H_
