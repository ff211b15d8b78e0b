#ifndef TANDEM_ENGINE_DATA_FORMATS_COMPRESSED_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_COMPRESSED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem {

// A regular file that is read from its begin to its end: plain, or compressed by gzip or xz, told by its
// first bytes. Every error is INVALID_ARGUMENT and names the file. Not thread-safe.
class CompressedFile {
 public:
  static absl::StatusOr<std::unique_ptr<CompressedFile>> Open(const std::string& path);
  virtual ~CompressedFile() = default;
  CompressedFile(const CompressedFile&) = delete;
  CompressedFile& operator=(const CompressedFile&) = delete;

  // Reads up to `size` decompressed bytes; fewer only at the end.
  virtual absl::StatusOr<int64_t> Read(void* data, int64_t size) = 0;

  // Reads all, before any Read. It may be at most `max_bytes`: a small file that would become huge takes no
  // more memory than that, and a plain one that is longer is refused before it is read.
  absl::StatusOr<std::string> ReadAll(int64_t max_bytes);

  // INVALID_ARGUMENT where it is plain, and longer than that: it need not be read to know.
  absl::Status CheckPlainLength(int64_t max_bytes) const;
  // INVALID_ARGUMENT: it is longer than that.
  absl::Status TooLong(int64_t max_bytes) const;

  // For a whole that is read: `most`, or less where `times` as many bytes, what their reader makes of them
  // included, would take more than half of this machine's memory.
  static int64_t MostInMemory(int64_t most, int64_t times);

  // The decompressed length, from the file's size, trailer or index, without decompressing; -1 where they do
  // not say it, or say more than can be. A gzip file of several members says that of the last one.
  virtual int64_t StatedLength() = 0;

  const std::string& path() const { return path_; }
  // INVALID_ARGUMENT: the path, then `what`.
  absl::Status Error(const std::string& what) const;

 protected:
  // `plain_bytes`: the file's size where it is not compressed.
  explicit CompressedFile(std::string path, int64_t plain_bytes = 0)
      : path_(std::move(path)), plain_bytes_(plain_bytes) {}

 private:
  const std::string path_;
  const int64_t plain_bytes_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_COMPRESSED_FILE_H_
