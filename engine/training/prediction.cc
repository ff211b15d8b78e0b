#include "engine/training/prediction.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "engine/base/status_macros.h"
#include "engine/graph/ops/normalize.h"
#include "engine/layers/model.h"

namespace tandem {
namespace {

// Returns softmax(logits), in double precision.
std::vector<double> Probabilities(absl::Span<const float> logits) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> probabilities;
  double sum = 0;
  for (const float logit : logits) {
    probabilities.push_back(std::exp(static_cast<double>(logit) - largest));
    sum += probabilities.back();
  }
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

}  // namespace

Predictor::Predictor(const TrainedModel& model, SampleType type, Device& device)
    : model_(model), type_(type), device_(device), variables_(device.CreateVariables()) {}

absl::StatusOr<Executable*> Predictor::ExecutableFor(int64_t samples) {
  Compiled& compiled = samples == kBatch ? whole_ : part_;
  if (compiled.samples == samples) return compiled.executable.get();
  compiled = {};
  const v1::Model& model = model_.spec.model();
  Graph graph;
  ValueId input = graph.AddInput("input", DTypeOfSamples(type_), InputShapeOf(model).Batched(samples));
  if (type_ != SampleType::kTokens) {
    const ResolvedNormalization& normalization = model_.trained_on.normalization;
    TANDEM_ASSIGN_OR_RETURN(
        input, AddNormalize(normalization.scale, normalization.mean, normalization.standard_deviation,
                            device_.dtype(), input, graph));
  }
  TANDEM_ASSIGN_OR_RETURN(const Network network,
                          BuildModel(model, input, device_.dtype(), /*training=*/false, graph));
  graph.MarkOutput(network.output);
  TANDEM_ASSIGN_OR_RETURN(compiled.executable, device_.Compile(graph, variables_.get()));
  // The first executable creates the variables.
  if (!has_weights_) TANDEM_RETURN_IF_ERROR(WriteWeights(model_, *variables_));
  has_weights_ = true;
  compiled.samples = samples;
  return compiled.executable.get();
}

absl::StatusOr<Tensor> Predictor::Run(const Tensor& samples) {
  const int64_t count = samples.shape()[0];
  const int64_t sample_bytes = samples.bytes() / count;
  Tensor outputs;
  for (int64_t begin = 0; begin < count; begin += kBatch) {
    const int64_t batch = std::min(kBatch, count - begin);
    TANDEM_ASSIGN_OR_RETURN(Executable * executable, ExecutableFor(batch));
    const auto* input = static_cast<const std::byte*>(samples.raw_data()) + begin * sample_bytes;
    // Inputs must be aligned for their type. Every sample is.
    TANDEM_RETURN_IF_ERROR(executable->Run({input}, nullptr));
    TANDEM_ASSIGN_OR_RETURN(const Tensor output, executable->Output(0));
    const Tensor part = output.CastTo(DType::kFloat32);
    if (begin == 0) outputs = Tensor(DType::kFloat32, part.shape().WithExtent(0, count));
    std::memcpy(outputs.data<float>().data() + begin * (outputs.elements() / count), part.raw_data(),
                part.bytes());
  }
  return outputs;
}

v1::Prediction MakePrediction(const Shape& shape, const float* output, const PredictionFormat& format) {
  v1::Prediction prediction;
  for (const int64_t extent : shape.extents()) prediction.add_output_shape(extent);
  if (format.outputs || !format.classifies) {
    prediction.mutable_outputs()->Add(output, output + shape.elements());
    if (format.target_deviation > 0) {
      for (float& number : *prediction.mutable_outputs()) {
        number = static_cast<float>(number * format.target_deviation + format.target_mean);
      }
    }
  }
  if (!format.classifies || shape.elements() == 0) return prediction;
  const int64_t classes = shape.rank() == 0 ? 1 : shape[-1];
  const absl::Span<const float> logits(output + shape.elements() - classes, classes);
  const std::vector<double> probabilities = Probabilities(logits);
  // NaN comes last.
  const auto key = [&](int64_t i) { return std::isnan(logits[i]) ? -INFINITY : logits[i]; };
  std::vector<int64_t> order(classes);
  std::iota(order.begin(), order.end(), 0);
  const int64_t wanted = std::min<int64_t>(format.top_k, classes);
  std::partial_sort(order.begin(), order.begin() + wanted, order.end(),
                    [&](int64_t a, int64_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  for (int64_t i = 0; i < wanted; ++i) {
    v1::ClassScore& score = *prediction.add_classes();
    score.set_index(order[i]);
    score.set_probability(probabilities[order[i]]);
    if (order[i] < static_cast<int64_t>(format.class_names.size())) {
      score.set_name(format.class_names[order[i]]);
    }
  }
  return prediction;
}

bool Classifies(const v1::Loss& loss) {
  return loss.has_softmax_cross_entropy() || loss.has_negative_log_likelihood() || loss.has_hinge();
}

}  // namespace tandem
