#ifndef TANDEM_PROTO_DATA_FOLDER_SHARDS_H_
#define TANDEM_PROTO_DATA_FOLDER_SHARDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The shards that a path of WebDatasetSource names: a file, a folder or a pattern.

namespace tandem {

// The most shards of a path.
inline constexpr size_t kMaxShards = 100000;
// The most bytes of a pattern, and of all paths of a pattern together.
inline constexpr size_t kMaxShardPatternBytes = 4096;
inline constexpr size_t kMaxShardPathsBytes = 64 << 20;

// Returns whether a path or URL is a pattern, because it has "{" or "}".
bool IsShardPattern(absl::string_view path);

// Returns whether a file's name ends as the name of a shard: ".tar", in any case.
bool IsShardName(absl::string_view name);

// Returns the folder of all shards of a pattern, with the slash at its end: "s3://bucket/train/" for
// "s3://bucket/train/{a,b}/{0..9}.tar". "" if the pattern has no slash before its first brace.
absl::string_view FolderOfPattern(absl::string_view pattern);

// Returns the paths or URLs of a pattern, sorted. WebDatasetSource describes patterns. INVALID_ARGUMENT if
// the braces are wrong, if two of the paths are equal, if there are more than kMaxShards, or if the pattern
// or its paths are too long (see above). The message completes a sentence that begins with a field's name.
absl::StatusOr<std::vector<std::string>> ExpandShardPattern(absl::string_view pattern);

// Returns the shards of a path on this machine, sorted: the file itself, the shards of a folder, or the paths
// of a pattern, which may not exist. INVALID_ARGUMENT, with the path: a folder that cannot be read, or that
// has no shards, more than kMaxShards, or shards of several parts of a data set; errors of
// ExpandShardPattern.
absl::StatusOr<std::vector<std::string>> ListShards(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_PROTO_DATA_FOLDER_SHARDS_H_
