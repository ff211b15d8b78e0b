#ifndef TANDEM_ENGINE_DATA_FORMATS_NPY_ARRAY_H_
#define TANDEM_ENGINE_DATA_FORMATS_NPY_ARRAY_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// The header of an array in NumPy's NPY format (numpy.lib.format, versions 1 to 3).
struct NpyHeader {
  std::string descr;       // The element type in NumPy's notation: "<f4", "|u1".
  char kind = 0;           // 'f', 'i', 'u' or 'b' (boolean).
  int64_t item_bytes = 0;  // Of an element.
  Shape shape;
  bool big_endian = false;     // The highest byte of an element is first.
  bool fortran_order = false;  // The first index varies fastest.
  int64_t data_at = 0;         // The offset of the first element.
};

// Parses the header of an NPY file that starts with `begin`. `what` names the array in errors.
// INVALID_ARGUMENT if it is no NPY file or its type is not a number.
absl::StatusOr<NpyHeader> ParseNpyHeader(const std::string& what, absl::string_view begin);

// Returns the elements of a whole array in C order and little-endian. `elements` are the bytes after the
// header, as many as the header announces.
std::string NativeElements(const NpyHeader& header, absl::string_view elements);

// Returns the place of an element for messages: "index 3", or "index [3, 1]". `element` counts in C order.
std::string PlaceInArray(const Shape& shape, int64_t element);

// The header of an array in a file.
struct NpyFile {
  std::string what;  // For messages: the path and the member.
  NpyHeader header;
};

// Reads the header of an NPY file, or of a member of an NPZ archive. INVALID_ARGUMENT with the file's name if
// it is missing, truncated, longer than its header says, or larger than kMaxDatasetBytes.
absl::StatusOr<NpyFile> ReadNpyHeader(const v1::NpyArray& array);

// Reads the elements, and passes whole elements to `use` in pieces, in C order and little-endian. An array in
// Fortran order takes up to kFortranBlockBytes of memory, or a sample if it is larger. Such an array in an
// archive is decompressed once for each block. Errors as ReadNpyHeader. Returns the error of `use`.
// INVALID_ARGUMENT if the file differs from `known`.
absl::Status ReadNpyElements(const v1::NpyArray& array, const NpyFile& known,
                             absl::FunctionRef<absl::Status(absl::string_view elements)> use);

// The samples of an array in Fortran order that are brought into C order at a time.
inline constexpr int64_t kFortranBlockBytes = int64_t{64} << 20;

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_NPY_ARRAY_H_
