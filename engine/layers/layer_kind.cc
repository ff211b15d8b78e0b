#include "engine/layers/layer_kind.h"

#include "engine/layers/activation.h"
#include "engine/layers/attention.h"
#include "engine/layers/batch_norm.h"
#include "engine/layers/blocks.h"
#include "engine/layers/conv_transpose.h"
#include "engine/layers/convolution.h"
#include "engine/layers/dense.h"
#include "engine/layers/dropout.h"
#include "engine/layers/embed_categories.h"
#include "engine/layers/embedding.h"
#include "engine/layers/group_norm.h"
#include "engine/layers/layer_norm.h"
#include "engine/layers/lstm.h"
#include "engine/layers/merge.h"
#include "engine/layers/pooling.h"
#include "engine/layers/reshape.h"
#include "engine/layers/slice.h"
#include "engine/layers/softmax.h"
#include "engine/layers/upsample.h"

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
    case v1::Layer::kSoftmax:
      return &SoftmaxKind();
    case v1::Layer::kLogSoftmax:
      return &LogSoftmaxKind();
    case v1::Layer::kMultiply:
      return &MultiplyKind();
    case v1::Layer::kConcat:
      return &ConcatKind();
    case v1::Layer::kDropout:
      return &DropoutKind();
    case v1::Layer::kReshape:
      return &ReshapeKind();
    case v1::Layer::kUpsample:
      return &UpsampleKind();
    case v1::Layer::kGroupNorm:
      return &GroupNormKind();
    case v1::Layer::kConvTranspose2D:
      return &ConvTranspose2dKind();
    case v1::Layer::kGlobalMaxPool2D:
      return &GlobalMaxPool2dKind();
    case v1::Layer::kSlice:
      return &SliceKind();
    case v1::Layer::kEmbedding:
      return &EmbeddingKind();
    case v1::Layer::kPositionalEmbedding:
      return &PositionalEmbeddingKind();
    case v1::Layer::kLayerNorm:
      return &LayerNormKind();
    case v1::Layer::kLstm:
      return &LstmKind();
    case v1::Layer::kMultiHeadAttention:
      return &MultiHeadAttentionKind();
    case v1::Layer::kEmbedCategories:
      return &EmbedCategoriesKind();
    default:
      return nullptr;
  }
}

}  // namespace tandem
