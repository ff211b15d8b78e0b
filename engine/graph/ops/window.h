#ifndef TANDEM_ENGINE_GRAPH_OPS_WINDOW_H_
#define TANDEM_ENGINE_GRAPH_OPS_WINDOW_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Something of a height and a width: a kernel, a stride.
struct Size2d {
  int64_t h = 0;
  int64_t w = 0;
  bool operator==(const Size2d&) const = default;
  // "[2, 2]".
  std::string ToString() const;
};

// How many windows of `size` lie over `image` padded by `padding` on each side:
// floor((image + 2 padding - dilation (size - 1) - 1) / stride) + 1 each way. INVALID_ARGUMENT, naming the
// attribute, where size, stride or dilation is below 1, padding below 0, any of them above 2^31 - 1, or no
// window fits.
absl::StatusOr<Size2d> CountWindows(Size2d image, Size2d size, Size2d stride, Size2d padding,
                                    Size2d dilation);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_WINDOW_H_
