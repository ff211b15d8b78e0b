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

  // Reads what is left, which may be at most `max_bytes`: a small file that would become huge takes no more
  // memory than that.
  absl::StatusOr<std::string> ReadAll(int64_t max_bytes);

  // For ReadAll: `most`, or less where `times` as many bytes, what their reader makes of them included, would
  // take more than half of this machine's memory.
  static int64_t MostInMemory(int64_t most, int64_t times);

  // The decompressed length, from the file's size, trailer or index, without decompressing; -1 where they do
  // not say it. A gzip file of several members says that of the last one.
  virtual int64_t StatedLength() = 0;

  const std::string& path() const { return path_; }
  // INVALID_ARGUMENT: the path, then `what`.
  absl::Status Error(const std::string& what) const;

 protected:
  explicit CompressedFile(std::string path) : path_(std::move(path)) {}

 private:
  const std::string path_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_COMPRESSED_FILE_H_
