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
  int64_t data_at = 0;  // The offset of the first element.
};

// Parses the header of an NPY file that starts with `begin`. `what` names the array in errors.
// INVALID_ARGUMENT if it is no NPY file or cannot be read: another byte order, Fortran's order of elements,
// or a type that is not a number.
absl::StatusOr<NpyHeader> ParseNpyHeader(const std::string& what, absl::string_view begin);

// The header of an array in a file.
struct NpyFile {
  std::string what;  // For messages: the path and the member.
  NpyHeader header;
};

// Reads the header of an NPY file, or of a member of an NPZ archive. INVALID_ARGUMENT with the file's name if
// it is missing, truncated, longer than its header says, or larger than kMaxDatasetBytes.
absl::StatusOr<NpyFile> ReadNpyHeader(const v1::NpyArray& array);

// Reads the elements, and passes whole elements to `use` in pieces, in order. Errors as ReadNpyHeader.
// Returns the error of `use`. INVALID_ARGUMENT if the file differs from `known`.
absl::Status ReadNpyElements(const v1::NpyArray& array, const NpyFile& known,
                             absl::FunctionRef<absl::Status(absl::string_view elements)> use);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_NPY_ARRAY_H_
