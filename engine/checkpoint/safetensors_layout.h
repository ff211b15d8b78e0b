#ifndef TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_LAYOUT_H_
#define TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_LAYOUT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Parts of safetensors_reader.h, for who reads a file piece by piece.

// Where a tensor's bytes lie, from the header's end on: to before `end`.
struct SafetensorsExtent {
  std::string name;
  int64_t begin = 0;
  int64_t end = 0;
};

struct SafetensorsLayout {
  std::vector<SafetensorsExtent> tensors;
  std::map<std::string, std::string> metadata;
};

// What stands before the header: its length.
inline constexpr int64_t kSafetensorsLengthBytes = 8;

// The header's length, from the first bytes of a file of `size` bytes. DATA_LOSS as ParseSafetensors.
absl::StatusOr<int64_t> ParseSafetensorsLength(absl::string_view bytes, int64_t size);

// What the header says, behind which the file has `data_size` bytes. DATA_LOSS as ParseSafetensors.
absl::StatusOr<SafetensorsLayout> ParseSafetensorsLayout(absl::string_view header, int64_t data_size);

}  // namespace tandem

#endif  // TANDEM_ENGINE_CHECKPOINT_SAFETENSORS_LAYOUT_H_
