#ifndef TANDEM_ENGINE_DATA_FORMATS_COMPRESSED_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_COMPRESSED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem {

// A regular file that is read from beginning to end: plain, compressed by gzip, xz, zstd or bzip2, or the
// only file of a zip archive. The first bytes tell the format. Every error names the file. It is
// RESOURCE_EXHAUSTED if there is not enough memory, and otherwise INVALID_ARGUMENT. Not thread-safe.
class CompressedFile {
 public:
  static absl::StatusOr<std::unique_ptr<CompressedFile>> Open(const std::string& path);
  virtual ~CompressedFile() = default;
  CompressedFile(const CompressedFile&) = delete;
  CompressedFile& operator=(const CompressedFile&) = delete;

  // Reads up to `size` decompressed bytes, fewer only at the end. Returns their number.
  virtual absl::StatusOr<int64_t> Read(void* data, int64_t size) = 0;

  // Skips `bytes` decompressed bytes. INVALID_ARGUMENT "is truncated" if there are fewer. By default, reads
  // them.
  virtual absl::Status Skip(int64_t bytes);

  // Reads the whole file. Call it before any Read. INVALID_ARGUMENT if the content has more than `max_bytes`.
  // A small file with a huge content takes no more memory than that. A longer plain file is refused unread.
  absl::StatusOr<std::string> ReadAll(int64_t max_bytes);

  // INVALID_ARGUMENT if the file is plain and longer than `max_bytes`. Does not read the file.
  absl::Status CheckPlainLength(int64_t max_bytes) const;
  // Returns the INVALID_ARGUMENT of a content above `max_bytes`.
  absl::Status TooLong(int64_t max_bytes) const;

  // Returns the limit for a file that is read whole: `most`, or less if `times` as many bytes would fill more
  // than half of this machine's memory. `times` covers the reader's own copies.
  static int64_t MostInMemory(int64_t most, int64_t times);

  // Returns the decompressed length from the file's size, trailer or index, without decompressing. Returns -1
  // if it is missing or impossible. For a gzip file with several members it is the length of the last member.
  virtual int64_t StatedLength() = 0;

  const std::string& path() const { return path_; }
  // Returns whether the file is not compressed.
  bool is_plain() const { return plain_bytes_ > 0; }
  // Returns INVALID_ARGUMENT with the path, then `what`.
  absl::Status Error(const std::string& what) const;

 protected:
  // Returns RESOURCE_EXHAUSTED.
  absl::Status NoMemory() const;

  // `plain_bytes` is the file's size if it is not compressed.
  explicit CompressedFile(std::string path, int64_t plain_bytes = 0)
      : path_(std::move(path)), plain_bytes_(plain_bytes) {}

 private:
  const std::string path_;
  const int64_t plain_bytes_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_COMPRESSED_FILE_H_
