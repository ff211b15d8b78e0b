#ifndef TANDEM_ENGINE_GRAPH_OPS_WINDOW_H_
#define TANDEM_ENGINE_GRAPH_OPS_WINDOW_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// A height and a width, for example of a kernel or a stride.
struct Size2d {
  int64_t h = 0;
  int64_t w = 0;
  bool operator==(const Size2d&) const = default;
  // Returns for example "[2, 2]".
  std::string ToString() const;
};

// Returns the number of windows of `size` over `image` with `padding` on each side, in each direction:
//
//   floor((image + 2 padding - dilation (size - 1) - 1) / stride) + 1
//
// INVALID_ARGUMENT, naming the attribute, if size, stride or dilation is below 1, padding is below 0, or any
// of them is above 2^31 - 1. Also if no window fits.
absl::StatusOr<Size2d> CountWindows(Size2d image, Size2d size, Size2d stride, Size2d padding,
                                    Size2d dilation);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_WINDOW_H_
