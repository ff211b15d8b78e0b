#include "engine/backends/cuda/image.h"

#include "absl/strings/match.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {

ImageSizes ImageSizesOf(const Shape& shape, bool channels_last) {
  return {.outer = channels_last ? shape[0] : shape[0] * shape[1],
          .height = static_cast<int>(shape[2]),
          .width = static_cast<int>(shape[3]),
          .lanes = channels_last ? static_cast<int>(shape[1]) : 1};
}

absl::StatusOr<bool> MakesChannelsLast(Lowering& lowering, const Layout& from, ValueId made) {
  if (from.channels_last()) return true;
  const bool same_either_way = !Layout::ChannelsLast(from.dtype(), from.shape()).channels_last();
  if (!same_either_way) return false;
  for (const NodeId id : lowering.readers(made)) {
    const Node& reader = lowering.graph().node(id);
    if (absl::StartsWith(reader.op->kind(), "conv2d")) return true;
    for (const ValueId other : reader.inputs) {
      const Value& value = lowering.value(other);
      if (value.producer == kNoNode || value.shape != lowering.shape(made)) continue;
      const absl::StatusOr<Place> home = lowering.Home(other);  // Not there yet, where it is made later.
      if (home.ok() && home->layout.channels_last()) return true;
    }
  }
  return false;
}

}  // namespace tandem::cuda
