#ifndef TANDEM_ENGINE_BACKENDS_REFERENCE_KERNEL_H_
#define TANDEM_ENGINE_BACKENDS_REFERENCE_KERNEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/backend/communicator.h"
#include "engine/graph/graph.h"
#include "engine/tensor/tensor.h"

namespace tandem::reference {

// A node to compute, with its tensors. Floating-point tensors are float64 for any type in the graph. Others
// have the graph's type.
struct KernelCall {
  const Node& node;
  std::vector<Tensor*> inputs;
  std::vector<Tensor*> outputs;
  Communicator* communicator;  // Null for a single replica.

  template <typename OpType>
  const OpType& op() const {
    return static_cast<const OpType&>(*node.op);
  }
};

// Computes a node.
using Kernel = absl::Status (*)(const KernelCall& call);

// Returns null if the backend does not offer the kind.
Kernel FindKernel(absl::string_view kind);

// Returns the elements of a floating-point tensor.
inline absl::Span<double> Numbers(Tensor* tensor) { return tensor->data<double>(); }

// A tensor [N, C, H, W], element by element.
class Image {
 public:
  explicit Image(Tensor* tensor) : shape_(tensor->shape()), numbers_(Numbers(tensor)) {}

  int64_t n() const { return shape_[0]; }
  int64_t c() const { return shape_[1]; }
  int64_t h() const { return shape_[2]; }
  int64_t w() const { return shape_[3]; }

  bool Contains(int64_t row, int64_t column) const {
    return row >= 0 && row < h() && column >= 0 && column < w();
  }
  double& at(int64_t image, int64_t channel, int64_t row, int64_t column) const {
    return numbers_[((image * c() + channel) * h() + row) * w() + column];
  }

 private:
  const Shape& shape_;
  absl::Span<double> numbers_;
};

// Calls visit(n, c, row, column) for every pixel, in the order of memory.
template <typename Visit>
void ForEachPixel(const Image& image, Visit visit) {
  for (int64_t n = 0; n < image.n(); ++n) {
    for (int64_t c = 0; c < image.c(); ++c) {
      for (int64_t row = 0; row < image.h(); ++row) {
        for (int64_t column = 0; column < image.w(); ++column) visit(n, c, row, column);
      }
    }
  }
}

// A function for each kind. The ops' headers define the results.
absl::Status Conv2d(const KernelCall& call);
absl::Status Conv2dGradInput(const KernelCall& call);
absl::Status Conv2dGradWeight(const KernelCall& call);
absl::Status MaxPool2d(const KernelCall& call);
absl::Status MaxPool2dGrad(const KernelCall& call);
absl::Status AveragePool2d(const KernelCall& call);
absl::Status AveragePool2dGrad(const KernelCall& call);
absl::Status BatchNorm(const KernelCall& call);
absl::Status BatchNormGrad(const KernelCall& call);
absl::Status BatchNormInference(const KernelCall& call);
absl::Status BatchNormInferenceGrad(const KernelCall& call);
absl::Status BatchNormMoments(const KernelCall& call);
absl::Status BatchNormSync(const KernelCall& call);
absl::Status BatchNormRunning(const KernelCall& call);
absl::Status BatchNormSums(const KernelCall& call);
absl::Status BatchNormSyncGrad(const KernelCall& call);
absl::Status Linear(const KernelCall& call);
absl::Status LinearGradInput(const KernelCall& call);
absl::Status LinearGradWeight(const KernelCall& call);
absl::Status Relu(const KernelCall& call);
absl::Status ReluGrad(const KernelCall& call);
absl::Status Add(const KernelCall& call);
absl::Status Scale(const KernelCall& call);
absl::Status Reshape(const KernelCall& call);
absl::Status Normalize(const KernelCall& call);
absl::Status SoftmaxCrossEntropy(const KernelCall& call);
absl::Status SoftmaxCrossEntropyGrad(const KernelCall& call);
absl::Status ClassLoss(const KernelCall& call);
absl::Status ClassLossGrad(const KernelCall& call);
absl::Status ValueLoss(const KernelCall& call);
absl::Status ValueLossGrad(const KernelCall& call);
absl::Status CosineEmbedding(const KernelCall& call);
absl::Status CosineEmbeddingGrad(const KernelCall& call);
absl::Status CountCorrect(const KernelCall& call);
absl::Status CountLabels(const KernelCall& call);
absl::Status CountSides(const KernelCall& call);
absl::Status Accumulate(const KernelCall& call);
absl::Status AccumulateGradient(const KernelCall& call);
absl::Status Orthonormalize(const KernelCall& call);
absl::Status RestoreGradient(const KernelCall& call);
absl::Status MovingAverage(const KernelCall& call);
absl::Status AllReduce(const KernelCall& call);
absl::Status Activation(const KernelCall& call);
absl::Status ActivationGrad(const KernelCall& call);
absl::Status ChannelBias(const KernelCall& call);
absl::Status ChannelBiasGrad(const KernelCall& call);
absl::Status Concat(const KernelCall& call);
absl::Status Divide(const KernelCall& call);
absl::Status Dropout(const KernelCall& call);
absl::Status GroupNorm(const KernelCall& call);
absl::Status GroupNormGrad(const KernelCall& call);
absl::Status Multiply(const KernelCall& call);
absl::Status Softmax(const KernelCall& call);
absl::Status SoftmaxGrad(const KernelCall& call);
absl::Status Split(const KernelCall& call);
absl::Status Upsample(const KernelCall& call);
absl::Status UpsampleGrad(const KernelCall& call);
absl::Status Pad2d(const KernelCall& call);
absl::Status Crop2d(const KernelCall& call);
absl::Status Sgd(const KernelCall& call);
absl::Status GatherSamples(const KernelCall& call);
absl::Status FlipImages(const KernelCall& call);
absl::Status TranslateImages(const KernelCall& call);
absl::Status ResampleImages(const KernelCall& call);
absl::Status EraseImages(const KernelCall& call);
absl::Status SpreadImages(const KernelCall& call);
absl::Status EnlargeImages(const KernelCall& call);
absl::Status SaturateImages(const KernelCall& call);
absl::Status ShiftHues(const KernelCall& call);
absl::Status GatherRows(const KernelCall& call);
absl::Status GatherRowsGrad(const KernelCall& call);
absl::Status AddToEach(const KernelCall& call);
absl::Status SumOfEach(const KernelCall& call);
absl::Status AddSinusoids(const KernelCall& call);
absl::Status SplitHeads(const KernelCall& call);
absl::Status MergeHeads(const KernelCall& call);
absl::Status Matmul(const KernelCall& call);
absl::Status AttentionSoftmax(const KernelCall& call);
absl::Status AttentionSoftmaxGrad(const KernelCall& call);
absl::Status LayerNorm(const KernelCall& call);
absl::Status LayerNormGrad(const KernelCall& call);
absl::Status Lstm(const KernelCall& call);
absl::Status LstmGrad(const KernelCall& call);
absl::Status Adadelta(const KernelCall& call);
absl::Status Adagrad(const KernelCall& call);
absl::Status Adam(const KernelCall& call);
absl::Status Adamax(const KernelCall& call);
absl::Status ClipGradients(const KernelCall& call);
absl::Status Lamb(const KernelCall& call);
absl::Status Lion(const KernelCall& call);
absl::Status Muon(const KernelCall& call);
absl::Status Nadam(const KernelCall& call);
absl::Status Rmsprop(const KernelCall& call);
absl::Status UnscaleGradients(const KernelCall& call);

}  // namespace tandem::reference

#endif  // TANDEM_ENGINE_BACKENDS_REFERENCE_KERNEL_H_
