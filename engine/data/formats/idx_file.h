#ifndef TANDEM_ENGINE_DATA_FORMATS_IDX_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_IDX_FILE_H_

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/tensor/shape.h"

namespace tandem {

// A file of unsigned bytes in the IDX format (the MNIST database's): two zero bytes, the element type 0x08,
// the rank, one 32-bit big-endian extent a dimension, then the elements, row-major. Plain or gzip-compressed,
// told by its first bytes. Every error is INVALID_ARGUMENT and names the file. Not thread-safe.
class IdxFile {
 public:
  // Opens a regular file and reads its header, whose rank must be in [min_rank, max_rank] and whose elements
  // must not exceed `max_bytes`.
  static absl::StatusOr<std::unique_ptr<IdxFile>> Open(const std::string& path, int min_rank, int max_rank,
                                                       int64_t max_bytes);
  ~IdxFile();
  IdxFile(const IdxFile&) = delete;
  IdxFile& operator=(const IdxFile&) = delete;

  // From the header: [samples, ...].
  const Shape& shape() const { return shape_; }

  // Checks that the file holds the elements that its header announces and nothing more. A compressed file is
  // only decompressed where the length in its trailer does not say so. Either this or ReadAll, once.
  absl::Status CheckLength();
  // Reads all elements.
  absl::StatusOr<std::vector<uint8_t>> ReadAll();

 private:
  IdxFile(std::string path, int64_t file_bytes) : path_(std::move(path)), file_bytes_(file_bytes) {}
  absl::Status ReadHeader(int min_rank, int max_rank, int64_t max_bytes);
  // Reads up to `size` bytes; fewer only at the end.
  absl::StatusOr<int64_t> Read(uint8_t* data, int64_t size);
  absl::Status Truncated(int64_t found) const;
  absl::Status TooLong() const;
  absl::Status CheckNothingFollows();
  absl::Status Error(const std::string& what) const;

  const std::string path_;
  const int64_t file_bytes_;
  gzFile file_ = nullptr;
  bool compressed_ = false;
  uint32_t trailer_length_ = 0;  // Of a compressed file: the length modulo 2^32 that its last four bytes say.
  int64_t header_bytes_ = 0;
  Shape shape_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_IDX_FILE_H_
