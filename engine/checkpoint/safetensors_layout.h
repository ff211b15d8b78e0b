#ifndef TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_LAYOUT_H_
#define TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_LAYOUT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/safetensors_reader.h"

namespace tandem {

// The parts of safetensors_reader.h, for callers that read a file piece by piece.

// A tensor and the place of its bytes, counted from the header's end. `end` is exclusive.
struct SafetensorsExtent {
  std::string name;
  SafetensorsEntry entry;
  int64_t begin = 0;
  int64_t end = 0;
};

struct SafetensorsLayout {
  std::vector<SafetensorsExtent> tensors;  // By name.
  std::map<std::string, std::string> metadata;
};

// The bytes of the header's length, before the header.
inline constexpr int64_t kSafetensorsLengthBytes = 8;

// Returns the header's length, from the first bytes of a file of `size` bytes. DATA_LOSS as ParseSafetensors.
absl::StatusOr<int64_t> ParseSafetensorsLength(absl::string_view bytes, int64_t size);

// Parses a header that `data_size` bytes follow. DATA_LOSS as ParseSafetensors.
absl::StatusOr<SafetensorsLayout> ParseSafetensorsLayout(absl::string_view header, int64_t data_size);

}  // namespace tandem

#endif  // TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_LAYOUT_H_
