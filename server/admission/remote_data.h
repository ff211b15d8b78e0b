#ifndef TANDEM_SERVER_ADMISSION_REMOTE_DATA_H_
#define TANDEM_SERVER_ADMISSION_REMOTE_DATA_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/data/source_paths.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// Returns true if a path in a data set's source or of initial weights is a URL ("https://...", "s3://..."),
// not a file's path.
bool IsUrl(absl::string_view path);

// Returns a URL for people: without its digest, and without its query, which may have secrets.
std::string ShownUrl(absl::string_view url);

// A URL to fetch, and the field that names it.
struct FieldUrl {
  std::string field;
  std::string url;
  PathKind kind = PathKind::kFile;
};

// Returns the URLs in the source of `spec`, in the order of PathsOf. The fields begin with `prefix`, if not
// empty ("spec.dataset.csv.train").
std::vector<FieldUrl> UrlsOf(const v1::DatasetSpec& spec, absl::string_view prefix = "");

// Replaces the URLs in the source of `spec` by the first of `urls`, in the order of UrlsOf.
void SetUrls(const std::vector<std::string>& urls, v1::DatasetSpec* spec);

// Returns true if a path of the source of `spec` is a URL. Does not look up a name.
bool NamesUrls(const v1::DatasetSpec& spec);

// Returns the most memory, in bytes, that a pinned URL takes.
size_t PinnedBytes(absl::string_view url);

// Returns the most memory, in bytes, that pinning the URLs of `spec` adds.
size_t PinBytes(const v1::DatasetSpec& spec);

// The progress of a fetch.
struct FetchProgress {
  int64_t bytes_done = 0;
  int64_t bytes_total = 0;  // 0: unknown.
  int64_t files_done = 0;
  int64_t files_total = 0;  // 0: unknown.
};

inline constexpr char kDataBeingFetched[] = "DATA_BEING_FETCHED";

// Returns UNAVAILABLE with the reason kDataBeingFetched. The message and the details have the progress.
absl::Status DataBeingFetched(const FetchProgress& progress);

// Puts `prefix` before the fields of an error of RemoteData. Keeps the code, the reason and the other
// details.
absl::Status WithFieldPrefix(absl::string_view prefix, const absl::Status& status);

// Fetches data that specs name by URLs into a cache. A fetched URL is pinned to its content by "#sha256=<64
// hexadecimal digits>". The digest is the content's, or for a folder that of the listing of its contents. A
// pinned URL means exactly these bytes. Thread-safe.
class RemoteData {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<v1::DatasetSpec>)>;
  using UrlsDone = absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)>;

  virtual ~RemoteData() = default;

  // Fetches `urls` for `user`, unless the cache has them. Never blocks. Calls `done` once, from any thread,
  // perhaps before EnsureUrls returns, with each URL pinned, in the same order.
  //
  // If the fetch takes longer than `wait`, the result is DataBeingFetched. The fetch continues, and a later
  // call with the same URLs joins the fetch or gets its result. Other errors name the wrong fields in their
  // violations:
  // - INVALID_ARGUMENT with the reason FETCH_FAILED: the URL does not exist, is refused, or has another
  //   checksum.
  // - PERMISSION_DENIED with FETCH_NOT_ALLOWED: the daemon does not fetch from this place.
  // - RESOURCE_EXHAUSTED with CACHE_FULL.
  // RESOURCE_EXHAUSTED with TOO_MANY_FETCHES and a delay names no field: the user has too many other fetches.
  virtual void EnsureUrls(std::vector<FieldUrl> urls, const std::string& user, absl::Duration wait,
                          UrlsDone done) = 0;

  // Like EnsureUrls, for the URLs in the source of `spec`. Calls `done` with the spec and each URL pinned.
  // The fields of errors are relative to the spec.
  void Ensure(const v1::DatasetSpec& spec, const std::string& user, absl::Duration wait, Done done);

  // Returns the absolute path of the file or folder that EnsureUrls fetched for a URL. For a pattern of
  // shards, returns the absolute pattern of the fetched files. A pinned URL gives the pinned content, any
  // other URL the newest content. Fetches nothing, so any user may call. INVALID_ARGUMENT if the cache does
  // not have the content, or has another kind. The content stays for some minutes at least. It also stays as
  // long as a job that has not ended, or a registered data set, names it.
  virtual absl::StatusOr<std::string> LocalPath(const std::string& url, PathKind kind) const = 0;

  // Fetches the public set `name` ("mnist") for `user` into the folder of public sets, where the catalog
  // finds the set. Calls `done` like EnsureUrls: OK if the set is complete. NOT_FOUND: no such set.
  virtual void FetchPublicSet(const std::string& name, const std::string& user, absl::Duration wait,
                              absl::AnyInvocable<void(absl::Status)> done) = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_REMOTE_DATA_H_
