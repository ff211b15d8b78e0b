#ifndef TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_READER_H_
#define TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_READER_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// What a safetensors file holds: named tensors, and strings by key.
struct SafetensorsContents {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;

  // Null where there is none of the name.
  const Tensor* Find(const std::string& name) const;
};

// A tensor that a file holds, without its numbers.
struct SafetensorsEntry {
  DType dtype = DType::kFloat32;
  Shape shape;
};

// What a file says that it holds.
struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// Reads the safetensors format (https://huggingface.co/docs/safetensors): 8 bytes little-endian, the header's
// length; the header, JSON; the tensors' bytes. Nothing in `bytes` is trusted. DATA_LOSS, saying what is
// wrong, where the header is no such JSON or longer than 32 MiB, a tensor's type is not one of F64, F32, F16,
// BF16, I64, I32 and U8, its extents and its bytes do not agree, or tensors leave gaps, overlap or end beyond
// the file.
absl::StatusOr<SafetensorsContents> ParseSafetensors(absl::string_view bytes);

// The same for a file. NOT_FOUND or PERMISSION_DENIED where it cannot be opened; errors name the path.
absl::StatusOr<SafetensorsContents> ReadSafetensors(const std::string& path);

// What a file holds, without its tensors' bytes, of which it is only checked that they are all there. Errors
// as ReadSafetensors.
absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_READER_H_
