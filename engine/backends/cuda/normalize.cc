#include "engine/backends/cuda/kernels/normalize.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/device_table.h"
#include "engine/backends/cuda/image.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/normalize.h"

namespace tandem::cuda {
namespace {

// Returns factor and offset of all channels, or of each.
std::vector<double> PairsOf(const NormalizeOp& op) {
  std::vector<double> pairs;
  for (size_t c = 0; c < std::max(op.mean.size(), op.std.size()); ++c) {
    const double mean = op.mean.size() == 1 ? op.mean[0] : op.mean[c];
    const double std = op.std.size() == 1 ? op.std[0] : op.std[c];
    pairs.push_back(op.scale / std);
    pairs.push_back(-mean / std);
  }
  return pairs;
}

absl::Status LowerNormalize(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.outputs[0]));
  const auto& op = static_cast<const NormalizeOp&>(*node.op);
  const Shape& shape = lowering.shape(node.outputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  const DType x_type = home.layout.dtype();
  if (x_type != DType::kUInt8 && x_type != DType::kFloat32 && x_type != lowering.compute()) {
    return absl::UnimplementedError(absl::StrCat("cuda: normalize of ", ToString(x_type), shape.ToString()));
  }
  const bool is_image = shape.rank() == 4 && !IsFlattened(lowering, node.outputs[0]);
  const bool last = home.layout.channels_last() || is_image;
  const DType y_type = lowering.compute();
  const Layout layout = last ? Layout::ChannelsLast(y_type, shape) : Layout::Plain(y_type, shape);
  const bool bytes = x_type == DType::kUInt8;
  const auto byte_pairs = FloatTable(bytes ? PairsOf(op) : std::vector<double>());
  const auto pairs = std::make_shared<DeviceTable<double>>(bytes ? std::vector<double>() : PairsOf(op));
  const Normalization how = {.sizes = ChannelSizesOf(shape),
                             .x_channels_last = home.layout.channels_last(),
                             .y_channels_last = layout.channels_last(),
                             .by_channel = op.mean.size() > 1 || op.std.size() > 1};
  const Region x = home.region;
  const Region y = lowering.Define(node.outputs[0], layout);
  lowering.Emit({.name = "normalize",
                 .reads = {x},
                 .writes = {y},
                 .run =
                     [=](const RunContext& run) {
                       Normalization with_pairs = how;
                       with_pairs.byte_pairs = byte_pairs->data();
                       with_pairs.pairs = pairs->data();
                       Normalize(with_pairs, x_type, run.At(x), y_type, run.At(y), run.stream);
                       return absl::OkStatus();
                     },
                 .bind =
                     [=](const RunContext& run) {
                       TANDEM_RETURN_IF_ERROR(byte_pairs->Upload(run.stream));
                       return pairs->Upload(run.stream);
                     }});
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> NormalizeOps() {
  static constexpr Offered kOps[] = {{"normalize", LowerNormalize}};
  return kOps;
}

}  // namespace tandem::cuda
