#ifndef TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_WRITER_H_
#define TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_WRITER_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/env.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// A tensor and its name in the file.
using NamedTensor = std::pair<std::string, Tensor>;

// What such a file begins with: the header's length and the header, which says where each tensor's bytes will
// lie after it. Metadata stands first, sorted by key. INVALID_ARGUMENT as below.
absl::StatusOr<std::string> MakeSafetensorsHeader(absl::Span<const NamedTensor> tensors,
                                                  const std::map<std::string, std::string>& metadata);

// Writes a file in the safetensors format (https://huggingface.co/docs/safetensors), which holds the tensors
// in their order without gaps, each row-major and little-endian, and the strings of `metadata`. The file is
// there whole or not at all, and durable on OK. INVALID_ARGUMENT for a name that is empty, reserved or given
// twice.
absl::Status WriteSafetensors(Env* env, const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata);

}  // namespace tandem

#endif  // TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_WRITER_H_
