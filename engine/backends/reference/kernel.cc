#include "engine/backends/reference/kernel.h"

#include "engine/graph/ops/update.h"

namespace tandem::reference {
namespace {

// Runs an update unless its last input says to skip it.
template <Kernel kUpdate>
absl::Status IfApplied(const KernelCall& call) {
  const int apply = call.op<UpdateOp>().ApplyInput(call.inputs.size());
  return apply >= 0 && Numbers(call.inputs[apply])[0] == 0 ? absl::OkStatus() : kUpdate(call);
}

struct Entry {
  absl::string_view kind;
  Kernel kernel;
};

constexpr Entry kKernels[] = {
    {"accumulate", Accumulate},
    {"accumulate_gradient", AccumulateGradient},
    {"activation", Activation},
    {"activation_grad", ActivationGrad},
    {"adadelta", IfApplied<Adadelta>},
    {"adagrad", IfApplied<Adagrad>},
    {"adam", IfApplied<Adam>},
    {"adamax", IfApplied<Adamax>},
    {"add", Add},
    {"add_sinusoids", AddSinusoids},
    {"add_to_each", AddToEach},
    {"all_reduce", AllReduce},
    {"attention_softmax", AttentionSoftmax},
    {"attention_softmax_grad", AttentionSoftmaxGrad},
    {"average_pool2d", AveragePool2d},
    {"average_pool2d_grad", AveragePool2dGrad},
    {"batch_norm", BatchNorm},
    {"batch_norm_grad", BatchNormGrad},
    {"batch_norm_inference", BatchNormInference},
    {"batch_norm_inference_grad", BatchNormInferenceGrad},
    {"batch_norm_moments", BatchNormMoments},
    {"batch_norm_running", BatchNormRunning},
    {"batch_norm_sums", BatchNormSums},
    {"batch_norm_sync", BatchNormSync},
    {"batch_norm_sync_grad", BatchNormSyncGrad},
    {"channel_bias", ChannelBias},
    {"channel_bias_grad", ChannelBiasGrad},
    {"class_loss", ClassLoss},
    {"class_loss_grad", ClassLossGrad},
    {"clip_gradients", ClipGradients},
    {"concat", Concat},
    {"conv2d", Conv2d},
    {"conv2d_grad_input", Conv2dGradInput},
    {"conv2d_grad_weight", Conv2dGradWeight},
    {"cosine_embedding", CosineEmbedding},
    {"cosine_embedding_grad", CosineEmbeddingGrad},
    {"count_correct", CountCorrect},
    {"count_labels", CountLabels},
    {"count_sides", CountSides},
    {"crop2d", Crop2d},
    {"divide", Divide},
    {"dropout", Dropout},
    {"enlarge_images", EnlargeImages},
    {"erase_images", EraseImages},
    {"flip_images", FlipImages},
    {"gather_rows", GatherRows},
    {"gather_rows_grad", GatherRowsGrad},
    {"gather_samples", GatherSamples},
    {"group_norm", GroupNorm},
    {"group_norm_grad", GroupNormGrad},
    {"lamb", IfApplied<Lamb>},
    {"layer_norm", LayerNorm},
    {"layer_norm_grad", LayerNormGrad},
    {"linear", Linear},
    {"linear_grad_input", LinearGradInput},
    {"linear_grad_weight", LinearGradWeight},
    {"lion", IfApplied<Lion>},
    {"lstm", Lstm},
    {"lstm_grad", LstmGrad},
    {"matmul", Matmul},
    {"max_pool2d", MaxPool2d},
    {"max_pool2d_grad", MaxPool2dGrad},
    {"merge_heads", MergeHeads},
    {"moving_average", MovingAverage},
    {"multiply", Multiply},
    {"muon", IfApplied<Muon>},
    {"nadam", IfApplied<Nadam>},
    {"normalize", Normalize},
    {"orthonormalize", Orthonormalize},
    {"pad2d", Pad2d},
    {"relu", Relu},
    {"relu_grad", ReluGrad},
    {"resample_images", ResampleImages},
    {"reshape", Reshape},
    {"restore_gradient", RestoreGradient},
    {"rmsprop", IfApplied<Rmsprop>},
    {"saturate_images", SaturateImages},
    {"scale", Scale},
    {"sgd", IfApplied<Sgd>},
    {"shift_hues", ShiftHues},
    {"softmax", Softmax},
    {"softmax_cross_entropy", SoftmaxCrossEntropy},
    {"softmax_cross_entropy_grad", SoftmaxCrossEntropyGrad},
    {"softmax_grad", SoftmaxGrad},
    {"split", Split},
    {"split_heads", SplitHeads},
    {"spread_images", SpreadImages},
    {"sum_of_each", SumOfEach},
    {"translate_images", TranslateImages},
    {"unscale_gradients", UnscaleGradients},
    {"upsample", Upsample},
    {"upsample_grad", UpsampleGrad},
    {"value_loss", ValueLoss},
    {"value_loss_grad", ValueLossGrad},
};

}  // namespace

Kernel FindKernel(absl::string_view kind) {
  for (const Entry& entry : kKernels) {
    if (entry.kind == kind) return entry.kernel;
  }
  return nullptr;
}

}  // namespace tandem::reference
