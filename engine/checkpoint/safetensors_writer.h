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
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// A tensor and its name in the file.
using NamedTensor = std::pair<std::string, Tensor>;

// A tensor's name in the file, type and shape.
using NamedEntry = std::pair<std::string, SafetensorsEntry>;

// Returns the beginning of such a file: the header's length and the header with the place of each tensor's
// bytes. Metadata come first, sorted by key. INVALID_ARGUMENT as WriteSafetensors.
absl::StatusOr<std::string> MakeSafetensorsHeader(absl::Span<const NamedEntry> tensors,
                                                  const std::map<std::string, std::string>& metadata);
absl::StatusOr<std::string> MakeSafetensorsHeader(absl::Span<const NamedTensor> tensors,
                                                  const std::map<std::string, std::string>& metadata);

// Writes a file in the safetensors format (https://huggingface.co/docs/safetensors), atomically. It holds the
// tensors in order, without gaps, each row-major and little-endian, and the strings of `metadata`. After OK
// the file is durable. INVALID_ARGUMENT for a name that is empty, reserved or repeated.
absl::Status WriteSafetensors(Env* env, const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata);

}  // namespace tandem

#endif  // TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_WRITER_H_
