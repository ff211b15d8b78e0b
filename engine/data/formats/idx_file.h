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

// A file of unsigned bytes in the IDX format (of the MNIST database). It has two zero bytes, the element type
// 0x08, the rank, a 32-bit big-endian extent for each dimension, then the elements, row-major. It is plain,
// or compressed by gzip or xz. Errors name the file and are INVALID_ARGUMENT, except in ReadAll. Not
// thread-safe.
class IdxFile {
 public:
  // Opens a regular file and reads its header. The rank must be in [min_rank, max_rank], and the elements
  // must have at most `max_bytes`.
  static absl::StatusOr<std::unique_ptr<IdxFile>> Open(const std::string& path, int min_rank, int max_rank,
                                                       int64_t max_bytes);
  IdxFile(const IdxFile&) = delete;
  IdxFile& operator=(const IdxFile&) = delete;

  // Returns the header's shape: [samples, ...].
  const Shape& shape() const { return shape_; }

  // Checks that the file holds exactly the elements of its header. Reads the file only if the file does not
  // state its length. Call a single function of this and the next two, a single time.
  absl::Status CheckLength();
  // Reads all elements, and passes them to `use` in pieces, in order.
  absl::Status ReadPieces(absl::FunctionRef<void(absl::Span<const uint8_t>)> use);
  // Reads all elements. Memory grows with the elements that are read, not with the header's claim.
  // RESOURCE_EXHAUSTED if there is not enough memory.
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
