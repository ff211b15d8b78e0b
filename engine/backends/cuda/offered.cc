#include "engine/backends/cuda/offered.h"

#include <map>

namespace tandem::cuda {

Lower FindLower(absl::string_view kind) {
  static const auto* const kOffered = [] {
    auto* offered = new std::map<absl::string_view, Lower>();
    for (const auto family : {
             ActivationOps,  AugmentationOps,   BatchNormOps,      BatchNormSyncOps, BiasOps,
             ClassLossOps,   ClassificationOps, ConcatOps,         ConvolutionOps,   DropoutOps,
             ElementwiseOps, EmbeddingOps,      GradientFactorOps, GroupNormOps,     LayerNormOps,
             LinearOps,      LstmOps,           MuonOps,           NormalizeOps,     OptimizerOps,
             PoolingOps,     ResampleOps,       SoftmaxOps,        UpdateOps,        ValueLossOps,
         }) {
      for (const Offered& op : family()) offered->emplace(op.kind, op.lower);
    }
    return offered;
  }();
  const auto found = kOffered->find(kind);
  return found == kOffered->end() ? nullptr : found->second;
}

}  // namespace tandem::cuda
