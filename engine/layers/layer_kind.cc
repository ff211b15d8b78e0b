#include "engine/layers/layer_kind.h"

#include "engine/layers/activation.h"
#include "engine/layers/batch_norm.h"
#include "engine/layers/blocks.h"
#include "engine/layers/convolution.h"
#include "engine/layers/dense.h"
#include "engine/layers/merge.h"
#include "engine/layers/pooling.h"

namespace tandem {

const LayerKind* FindLayerKind(v1::Layer::KindCase kind) {
  switch (kind) {
    case v1::Layer::kConv2D:
      return &Conv2dKind();
    case v1::Layer::kMaxPool2D:
      return &MaxPool2dKind();
    case v1::Layer::kAveragePool2D:
      return &AveragePool2dKind();
    case v1::Layer::kDense:
      return &DenseKind();
    case v1::Layer::kFlatten:
      return &FlattenKind();
    case v1::Layer::kActivation:
      return &ActivationKind();
    case v1::Layer::kBatchNorm:
      return &BatchNormKind();
    case v1::Layer::kAdd:
      return &AddKind();
    case v1::Layer::kGlobalAveragePool2D:
      return &GlobalAveragePool2dKind();
    case v1::Layer::kResidual:
      return &ResidualKind();
    case v1::Layer::kRepeat:
      return &RepeatKind();
    default:
      return nullptr;
  }
}

}  // namespace tandem
