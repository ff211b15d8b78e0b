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
  std::string descr;       // The element type, as NumPy writes it: "<f4", "|u1".
  char kind = 0;           // 'f', 'i', 'u' or 'b' (boolean).
  int64_t item_bytes = 0;  // Of one element.
  Shape shape;
  int64_t data_at = 0;  // Where the elements begin.
};

// The header of an NPY file that begins so; `what` names the array in errors. INVALID_ARGUMENT where it is no
// NPY file, or holds what cannot be read: another byte order, Fortran's order of elements, or a type that is
// not a number, which is named.
absl::StatusOr<NpyHeader> ParseNpyHeader(const std::string& what, absl::string_view begin);

// An array of a file: its header.
struct NpyFile {
  std::string what;  // For messages: the path and the member.
  NpyHeader header;
};

// Reads the header of an NPY file, or of a member of an NPZ archive. INVALID_ARGUMENT, naming the file, where
// it is missing, truncated, longer than its header says, or larger than kMaxDatasetBytes.
absl::StatusOr<NpyFile> ReadNpyHeader(const v1::NpyArray& array);

// Reads the elements, of which `use` gets some whole ones at a time, in their order. Errors as ReadNpyHeader;
// the error of `use` is the result. INVALID_ARGUMENT, too, where the file is another one than `known`.
absl::Status ReadNpyElements(const v1::NpyArray& array, const NpyFile& known,
                             absl::FunctionRef<absl::Status(absl::string_view elements)> use);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_NPY_ARRAY_H_
