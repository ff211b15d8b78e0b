#ifndef TANDEM_SERVER_FETCH_DATA_URL_H_
#define TANDEM_SERVER_FETCH_DATA_URL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// The URL of data, as a data set's source names it.
struct DataUrl {
  enum class Scheme { kHttp, kHttps, kS3 };

  Scheme scheme = Scheme::kHttps;
  // The URL without its fragment. The cache's key.
  std::string location;
  // For people: without the query, which may have secrets.
  std::string shown;
  // Lower case. An IPv6 address has no brackets. For s3, the bucket.
  std::string host;
  // Default: the scheme's port. 0 for s3.
  int port = 0;
  // For s3: the object's key or a prefix of keys, without percent-escapes. May be empty.
  std::string key;
  // The required digest of the content: 64 lower-case hexadecimal digits. Empty: any content.
  std::string sha256;

  bool is_s3() const { return scheme == Scheme::kS3; }
};

// Parses "https://host/path", "http://host/path" or "s3://bucket/key", each optionally with "#sha256=<64
// hexadecimal digits>". INVALID_ARGUMENT for other text, and for a URL with a user or password, because
// everybody who can see the job would see them. The message completes a sentence that begins with a field's
// name.
absl::StatusOr<DataUrl> ParseDataUrl(absl::string_view text);

// Returns the URL without its query: the text in which braces mean a pattern of shards. S3 URLs have no
// query.
absl::string_view WithoutQuery(const DataUrl& url);

// Returns `url` with its content pinned.
std::string Pin(const DataUrl& url, absl::string_view sha256);

// Returns the last part of the URL's path as a file's name: its last 100 characters, with "_" for all but
// letters, digits, ".", "-" and "_". Returns "data" if nothing is left or the name begins with ".".
std::string FileNameOf(const DataUrl& url);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_DATA_URL_H_
