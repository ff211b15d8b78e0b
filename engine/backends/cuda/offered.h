#ifndef TANDEM_ENGINE_BACKENDS_CUDA_OFFERED_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_OFFERED_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// A kind of op with its lowering.
struct Offered {
  absl::string_view kind;
  Lower lower;
};

// The kinds of each family. Each family has its own file.
absl::Span<const Offered> ActivationOps();
absl::Span<const Offered> AugmentationOps();
absl::Span<const Offered> BatchNormOps();
absl::Span<const Offered> BatchNormSyncOps();
absl::Span<const Offered> BiasOps();
absl::Span<const Offered> ClassLossOps();
absl::Span<const Offered> ClassificationOps();
absl::Span<const Offered> ConcatOps();
absl::Span<const Offered> ConvolutionOps();
absl::Span<const Offered> DropoutOps();
absl::Span<const Offered> ElementwiseOps();
absl::Span<const Offered> EmbeddingOps();
absl::Span<const Offered> GradientFactorOps();
absl::Span<const Offered> GroupNormOps();
absl::Span<const Offered> LayerNormOps();
absl::Span<const Offered> LinearOps();
absl::Span<const Offered> LstmOps();
absl::Span<const Offered> MuonOps();
absl::Span<const Offered> NormalizeOps();
absl::Span<const Offered> OptimizerOps();
absl::Span<const Offered> PoolingOps();
absl::Span<const Offered> ResampleOps();
absl::Span<const Offered> SoftmaxOps();
absl::Span<const Offered> UpdateOps();
absl::Span<const Offered> ValueLossOps();

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_OFFERED_H_
