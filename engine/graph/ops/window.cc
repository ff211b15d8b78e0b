#include "engine/graph/ops/window.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();

absl::Status CheckRange(absl::string_view attribute, Size2d value, int64_t least) {
  for (const int64_t number : {value.h, value.w}) {
    if (number < least || number > kLargest) {
      return absl::InvalidArgumentError(
          absl::StrCat(attribute, " is ", value.ToString(), "; it must be from ", least, " to ", kLargest));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string Size2d::ToString() const { return absl::StrCat("[", h, ", ", w, "]"); }

absl::StatusOr<Size2d> CountWindows(Size2d image, Size2d size, Size2d stride, Size2d padding,
                                    Size2d dilation) {
  TANDEM_RETURN_IF_ERROR(CheckRange("the image's size", image, 1));
  TANDEM_RETURN_IF_ERROR(CheckRange("the window's size", size, 1));
  TANDEM_RETURN_IF_ERROR(CheckRange("stride", stride, 1));
  TANDEM_RETURN_IF_ERROR(CheckRange("padding", padding, 0));
  TANDEM_RETURN_IF_ERROR(CheckRange("dilation", dilation, 1));
  const int64_t rest_h = image.h + 2 * padding.h - dilation.h * (size.h - 1) - 1;
  const int64_t rest_w = image.w + 2 * padding.w - dilation.w * (size.w - 1) - 1;
  if (rest_h < 0 || rest_w < 0) {
    return absl::InvalidArgumentError(absl::StrCat("a window of ", size.ToString(), " with dilation ",
                                                   dilation.ToString(), " does not fit into an image of ",
                                                   image.ToString(), " with padding ", padding.ToString()));
  }
  return Size2d{rest_h / stride.h + 1, rest_w / stride.w + 1};
}

}  // namespace tandem
