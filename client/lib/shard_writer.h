#ifndef TANDEM_CLIENT_LIB_SHARD_WRITER_H_
#define TANDEM_CLIENT_LIB_SHARD_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/base/env.h"

namespace tandem::client {

// Writes samples into shards: plain tar archives (POSIX ustar) "<prefix>-000000.tar", "<prefix>-000001.tar"
// and so on. Equal samples give equal files. Not thread-safe.
class ShardWriter {
 public:
  // Begins a new shard after the first sample that makes a shard at least `shard_bytes` long. `env` must
  // outlive the writer.
  ShardWriter(Env* env, std::string prefix, int64_t shard_bytes)
      : env_(env), prefix_(std::move(prefix)), shard_bytes_(shard_bytes) {}

  // Adds a sample with the members "<key>.<ending>" and "<key>.cls". The key has at most 80 bytes.
  absl::Status Add(const std::string& key, const std::string& ending, absl::string_view picture, int label);
  // Ends the last shard. A shard gets its name when it is whole.
  absl::Status Finish();

  int64_t shards() const { return shards_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::string PathOf(int64_t shard) const;
  absl::Status AddMember(const std::string& name, absl::string_view content);

  Env* const env_;
  const std::string prefix_;
  const int64_t shard_bytes_;
  int64_t shards_ = 0;                  // Whole shards.
  int64_t bytes_ = 0;                   // Of whole shards.
  int64_t here_ = 0;                    // Bytes of the open shard.
  std::unique_ptr<WritableFile> file_;  // The open shard. Null if there is none.
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_SHARD_WRITER_H_
