#ifndef TANDEM_SERVER_FETCH_DATA_URL_H_
#define TANDEM_SERVER_FETCH_DATA_URL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Where data is, as a data set's source names it.
struct DataUrl {
  enum class Scheme { kHttp, kHttps, kS3 };

  Scheme scheme = Scheme::kHttps;
  // Without the fragment. It is what the cache knows the data by.
  std::string location;
  // For people: without what may be secret in it, its query.
  std::string shown;
  // In small letters; an IPv6 address without brackets. Of s3, the bucket.
  std::string host;
  // The scheme's own where none is given; 0 for s3.
  int port = 0;
  // Of s3: the object's key or a prefix of keys, as it is, without percent-escapes. May be empty.
  std::string key;
  // What the content must have: 64 small hexadecimal digits. Empty: anything.
  std::string sha256;

  bool is_s3() const { return scheme == Scheme::kS3; }
};

// Reads "https://host/path", "http://host/path" or "s3://bucket/key", each perhaps with "#sha256=<64
// hexadecimal digits>". INVALID_ARGUMENT, in words that follow a field's name: anything else; a user or a
// password in it, which all who may see the job would see.
absl::StatusOr<DataUrl> ParseDataUrl(absl::string_view text);

// `url` with its content pinned.
std::string Pin(const DataUrl& url, absl::string_view sha256);

// The last part of the URL's path, as a file may be called; "data" where that is not possible.
std::string FileNameOf(const DataUrl& url);

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_DATA_URL_H_
