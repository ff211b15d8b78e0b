#include <string>
#include <unordered_map>

#include "engine/backends/cpu/activation.h"
#include "engine/backends/cpu/attention.h"
#include "engine/backends/cpu/batch_norm.h"
#include "engine/backends/cpu/batch_norm_sync.h"
#include "engine/backends/cpu/channel_bias.h"
#include "engine/backends/cpu/classification.h"
#include "engine/backends/cpu/concat.h"
#include "engine/backends/cpu/convolution.h"
#include "engine/backends/cpu/dropout.h"
#include "engine/backends/cpu/elementwise.h"
#include "engine/backends/cpu/embedding.h"
#include "engine/backends/cpu/gradient_factors.h"
#include "engine/backends/cpu/group_norm.h"
#include "engine/backends/cpu/layer_norm.h"
#include "engine/backends/cpu/linear.h"
#include "engine/backends/cpu/losses.h"
#include "engine/backends/cpu/lowering.h"
#include "engine/backends/cpu/lstm.h"
#include "engine/backends/cpu/muon.h"
#include "engine/backends/cpu/optimizers.h"
#include "engine/backends/cpu/pad.h"
#include "engine/backends/cpu/pooling.h"
#include "engine/backends/cpu/softmax.h"
#include "engine/backends/cpu/update.h"
#include "engine/backends/cpu/upsample.h"

namespace tandem::cpu {

Lower FindLower(absl::string_view kind) {
  static const auto& offered = *new std::unordered_map<std::string, Lower>{
      {"accumulate", LowerAccumulate},
      {"accumulate_gradient", LowerAccumulateGradient},
      {"activation", LowerActivation},
      {"activation_grad", LowerActivationGrad},
      {"adadelta", LowerAdadelta},
      {"adagrad", LowerAdagrad},
      {"adam", LowerAdam},
      {"adamax", LowerAdamax},
      {"add", LowerAdd},
      {"add_sinusoids", LowerAddSinusoids},
      {"add_to_each", LowerAddToEach},
      {"all_reduce", LowerAllReduce},
      {"attention_softmax", LowerAttentionSoftmax},
      {"attention_softmax_grad", LowerAttentionSoftmaxGrad},
      {"average_pool2d", LowerAveragePool},
      {"average_pool2d_grad", LowerAveragePoolGrad},
      {"batch_norm", LowerBatchNorm},
      {"batch_norm_grad", LowerBatchNormGrad},
      {"batch_norm_inference", LowerBatchNormInference},
      {"batch_norm_inference_grad", LowerBatchNormInferenceGrad},
      {"batch_norm_moments", LowerBatchNormMoments},
      {"batch_norm_running", LowerBatchNormRunning},
      {"batch_norm_sums", LowerBatchNormSums},
      {"batch_norm_sync", LowerBatchNormSync},
      {"batch_norm_sync_grad", LowerBatchNormSyncGrad},
      {"channel_bias", LowerChannelBias},
      {"channel_bias_grad", LowerChannelBiasGrad},
      {"class_loss", LowerClassLoss},
      {"class_loss_grad", LowerClassLossGrad},
      {"clip_gradients", LowerClipGradients},
      {"concat", LowerConcat},
      {"conv2d", LowerConvForward},
      {"conv2d_grad_input", LowerConvGradInput},
      {"conv2d_grad_weight", LowerConvGradWeight},
      {"cosine_embedding", LowerCosineEmbedding},
      {"cosine_embedding_grad", LowerCosineEmbeddingGrad},
      {"count_correct", LowerCountCorrect},
      {"count_labels", LowerCountLabels},
      {"count_sides", LowerCountSides},
      {"crop2d", LowerCrop},
      {"divide", LowerDivide},
      {"dropout", LowerDropout},
      {"gather_rows", LowerGatherRows},
      {"gather_rows_grad", LowerGatherRowsGrad},
      {"group_norm", LowerGroupNorm},
      {"group_norm_grad", LowerGroupNormGrad},
      {"lamb", LowerLamb},
      {"layer_norm", LowerLayerNorm},
      {"layer_norm_grad", LowerLayerNormGrad},
      {"linear", LowerLinearForward},
      {"linear_grad_input", LowerLinearGradInput},
      {"linear_grad_weight", LowerLinearGradWeight},
      {"lion", LowerLion},
      {"lstm", LowerLstm},
      {"lstm_grad", LowerLstmGrad},
      {"matmul", LowerMatmul},
      {"max_pool2d", LowerMaxPool},
      {"max_pool2d_grad", LowerMaxPoolGrad},
      {"merge_heads", LowerMergeHeads},
      {"moving_average", LowerMovingAverage},
      {"multiply", LowerMultiply},
      {"muon", LowerMuon},
      {"nadam", LowerNadam},
      {"normalize", LowerNormalize},
      {"orthonormalize", LowerOrthonormalize},
      {"pad2d", LowerPad},
      {"relu", LowerRelu},
      {"relu_grad", LowerReluGrad},
      {"reshape", LowerReshape},
      {"restore_gradient", LowerRestoreGradient},
      {"rmsprop", LowerRmsprop},
      {"scale", LowerScale},
      {"sgd", LowerSgd},
      {"softmax", LowerSoftmax},
      {"softmax_cross_entropy", LowerSoftmaxCrossEntropy},
      {"softmax_cross_entropy_grad", LowerSoftmaxCrossEntropyGrad},
      {"softmax_grad", LowerSoftmaxGrad},
      {"split", LowerSplit},
      {"split_heads", LowerSplitHeads},
      {"sum_of_each", LowerSumOfEach},
      {"upsample", LowerUpsample},
      {"upsample_grad", LowerUpsampleGrad},
      {"value_loss", LowerValueLoss},
      {"value_loss_grad", LowerValueLossGrad},
  };
  const auto found = offered.find(std::string(kind));
  return found == offered.end() ? nullptr : found->second;
}

}  // namespace tandem::cpu
