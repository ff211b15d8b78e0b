#include "engine/backends/cuda/image.h"

#include "absl/strings/match.h"

namespace tandem::cuda {

ImageSizes ImageSizesOf(const Shape& shape, bool channels_last) {
  return {.outer = channels_last ? shape[0] : shape[0] * shape[1],
          .height = static_cast<int>(shape[2]),
          .width = static_cast<int>(shape[3]),
          .lanes = channels_last ? static_cast<int>(shape[1]) : 1};
}

bool IsWantedChannelsLast(Lowering& lowering, ValueId id) {
  for (const NodeId node : lowering.uses().readers(id)) {
    const Node& reader = lowering.graph().node(node);
    if (absl::StartsWith(reader.op->kind(), "conv2d")) return true;
    for (const ValueId other : reader.inputs) {
      const Value& value = lowering.value(other);
      if (value.producer == kNoNode || value.shape != lowering.shape(id)) continue;
      const absl::StatusOr<Place> home = lowering.HomeAsMade(other);  // Missing if it is computed later.
      if (home.ok() && home->layout.channels_last()) return true;
    }
  }
  return false;
}

bool MakesChannelsLast(Lowering& lowering, const Layout& from, ValueId made) {
  if (from.channels_last()) return true;
  const bool same_either_way = !Layout::ChannelsLast(from.dtype(), from.shape()).channels_last();
  return same_either_way && IsWantedChannelsLast(lowering, made);
}

bool IsFlattened(const Lowering& lowering, ValueId id) {
  bool flattened = false;
  for (const NodeId node : lowering.uses().readers(id)) {
    const Node& reader = lowering.graph().node(node);
    const absl::string_view kind = reader.op->kind();
    if (kind == "reshape") {
      flattened = true;
    } else if (kind == "relu" || kind == "activation" || kind == "dropout") {
      if (!IsFlattened(lowering, reader.outputs[0])) return false;
      flattened = true;
    } else if (kind != "relu_grad" && kind != "activation_grad") {
      return false;
    }
  }
  return flattened;
}

}  // namespace tandem::cuda
