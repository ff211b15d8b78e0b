#ifndef TANDEM_ENGINE_DATA_FORMATS_IDX_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_IDX_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/data/formats/compressed_file.h"
#include "engine/tensor/shape.h"

namespace tandem {

// A file of unsigned bytes in the IDX format (the MNIST database's): two zero bytes, the element type 0x08,
// the rank, one 32-bit big-endian extent a dimension, then the elements, row-major. Plain or compressed by
// gzip or xz. Every error is INVALID_ARGUMENT and names the file. Not thread-safe.
class IdxFile {
 public:
  // Opens a regular file and reads its header, whose rank must be in [min_rank, max_rank] and whose elements
  // must not exceed `max_bytes`.
  static absl::StatusOr<std::unique_ptr<IdxFile>> Open(const std::string& path, int min_rank, int max_rank,
                                                       int64_t max_bytes);
  IdxFile(const IdxFile&) = delete;
  IdxFile& operator=(const IdxFile&) = delete;

  // From the header: [samples, ...].
  const Shape& shape() const { return shape_; }

  // Checks that the file holds the elements that its header announces and nothing more. It is only read where
  // the length that it states does not say so. One of this and the following, once.
  absl::Status CheckLength();
  // Reads all elements, of which `use` gets some at a time, in their order.
  absl::Status ReadPieces(absl::FunctionRef<void(absl::Span<const uint8_t>)> use);
  // Reads all elements. Memory is taken as they come, not as the header announces them.
  absl::StatusOr<std::vector<uint8_t>> ReadAll();

 private:
  explicit IdxFile(std::unique_ptr<CompressedFile> file) : file_(std::move(file)) {}
  absl::Status ReadHeader(int min_rank, int max_rank, int64_t max_bytes);
  absl::Status Truncated(int64_t found) const;
  absl::Status CheckNothingFollows();

  const std::unique_ptr<CompressedFile> file_;
  int64_t header_bytes_ = 0;
  Shape shape_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_IDX_FILE_H_
