#ifndef TANDEM_ENGINE_DATA_FORMATS_SHARD_INDEX_H_
#define TANDEM_ENGINE_DATA_FORMATS_SHARD_INDEX_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem {

// The place of a sample in a shard.
struct ShardSample {
  int64_t picture_at = 0;  // Offset of the picture's bytes in the shard's file.
  int32_t picture_bytes = 0;
  int32_t label = 0;  // At least 0.
};

// The version of a shard's file. A changed file has another version.
struct ShardVersion {
  int64_t bytes = 0;
  int64_t modify_time_nanos = 0;
  uint64_t inode = 0;

  bool operator==(const ShardVersion&) const = default;
};

// The samples of a shard.
struct ShardIndex {
  std::string path;
  ShardVersion version;
  std::vector<ShardSample> samples;  // In the order of the shard.
  // The numbers of skipped members by their kinds: ".json", "hidden", "without an ending", "with other
  // endings".
  std::map<std::string, int64_t> skipped;
};

// The largest picture of a shard, in bytes of its file.
inline constexpr int64_t kMaxShardPictureBytes = int64_t{1} << 28;

// Reads the headers and labels of a shard, but no picture. WebDatasetSource describes shards.
// INVALID_ARGUMENT, with the path: the file cannot be read, or is no plain tar archive. The archive is
// damaged or truncated, or has data behind its end. It has no samples, or a sample without a picture or a
// label.
absl::StatusOr<ShardIndex> ReadShardIndex(const std::string& path);

// Reads the first `most` bytes of a sample's picture, fewer if it is shorter. INVALID_ARGUMENT, with the
// path: the file cannot be read, or has changed since it was indexed.
absl::StatusOr<std::string> ReadShardPicture(const ShardIndex& shard, const ShardSample& sample,
                                             int64_t most);

// Returns the name of a sample's picture for people: "shards/0.tar/a/7.jpg". Reads the shard's headers.
std::string ShownPicture(const ShardIndex& shard, const ShardSample& sample);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_SHARD_INDEX_H_
