#ifndef TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_READER_H_
#define TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_READER_H_

#include <map>
#include <set>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// The content of a safetensors file: named tensors, and strings by key.
struct SafetensorsContents {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;

  // Returns the tensor of this name, or null.
  const Tensor* Find(const std::string& name) const;
};

// The description of a tensor in a file.
struct SafetensorsEntry {
  DType dtype = DType::kFloat32;
  Shape shape;
};

// The header of a file.
struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;
  // Tensors of types that cannot be read, with their types' names.
  std::map<std::string, std::string> other_tensors = {};
  std::map<std::string, std::string> metadata;
};

// Reads the safetensors format (https://huggingface.co/docs/safetensors): the header's length in 8 bytes,
// little-endian, the header as JSON, and the tensors' bytes. Trusts nothing in `bytes`.
//
// DATA_LOSS with the fault if the header is no such JSON or longer than 32 MiB. A tensor's type must be F64,
// F32, F16, BF16, I64, I32 or U8. Its extents and bytes must agree. Tensors must not leave gaps, overlap, or
// end beyond the file.
absl::StatusOr<SafetensorsContents> ParseSafetensors(absl::string_view bytes);

// Reads a file as ParseSafetensors. NOT_FOUND or PERMISSION_DENIED if it cannot be opened. Errors name the
// path.
absl::StatusOr<SafetensorsContents> ReadSafetensors(const std::string& path);

// Reads a file's header, and checks that all bytes of the tensors exist. Tensors may have other types than
// those above. Errors as ReadSafetensors. Messages name the format if other software wrote the file.
absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const std::string& path);

// Reads the tensors of a file that have these names, and no other tensor's bytes. Leaves out names that the
// file does not have, and tensors of types that cannot be read. Calls `use` with one tensor at a time. Errors
// as ReadSafetensorsHeader. Returns the header.
absl::StatusOr<SafetensorsHeader> ReadSafetensorsTensors(
    const std::string& path, const std::set<std::string>& names,
    absl::FunctionRef<void(const std::string& name, Tensor tensor)> use);

}  // namespace tandem

#endif  // TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_READER_H_
