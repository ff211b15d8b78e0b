#include "tests/golden/labels.h"

#include "absl/strings/str_cat.h"

namespace tandem {

absl::Status CheckLabels(const Tensor& labels, int64_t classes) {
  if (labels.dtype() != DType::kInt64) {
    return absl::UnimplementedError("targets that are no class indices are not offered yet");
  }
  for (const int64_t label : labels.data<int64_t>()) {
    if (label < 0) return absl::UnimplementedError("ignore_index is not offered yet");
    if (label >= classes) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", label, " is not one of ", classes, " classes"));
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem
