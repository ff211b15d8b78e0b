#include "engine/training/prediction.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "engine/base/field_violations.h"
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

// Changes numbers of a scaled target to the table's own scale.
void RestoreScale(const PredictionFormat& format, google::protobuf::RepeatedField<float>* numbers) {
  if (!(format.target_deviation > 0)) return;
  for (float& number : *numbers) {
    number = static_cast<float>(number * format.target_deviation + format.target_mean);
  }
}

}  // namespace

absl::StatusOr<Graph> BuildPredictionGraph(const TrainedModel& model, SampleType type, int64_t samples,
                                           DType dtype) {
  Graph graph;
  ValueId input =
      graph.AddInput("input", DTypeOfSamples(type), InputShapeOf(model.spec.model()).Batched(samples));
  if (type != SampleType::kTokens) {
    const ResolvedNormalization& normalization = model.trained_on.normalization;
    TANDEM_ASSIGN_OR_RETURN(input, AddNormalize(normalization.scale, normalization.mean,
                                                normalization.standard_deviation, dtype, input, graph));
  }
  TANDEM_ASSIGN_OR_RETURN(const Network network,
                          BuildModel(model.spec.model(), input, dtype, /*training=*/false, graph));
  graph.MarkOutput(network.output);
  return graph;
}

Predictor::Predictor(const TrainedModel& model, SampleType type, Device& device)
    : model_(model), type_(type), device_(device), variables_(device.CreateVariables()) {}

absl::StatusOr<Executable*> Predictor::ExecutableFor(int64_t samples) {
  Compiled& compiled = samples == kBatch ? whole_ : part_;
  if (compiled.samples == samples) return compiled.executable.get();
  compiled = {};
  TANDEM_ASSIGN_OR_RETURN(const Graph graph, BuildPredictionGraph(model_, type_, samples, device_.dtype()));
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

v1::Prediction MakePrediction(const Shape& shape, const float* output, const PredictionFormat& format,
                              std::optional<int64_t> true_class) {
  v1::Prediction prediction;
  for (const int64_t extent : shape.extents()) prediction.add_output_shape(extent);
  if (format.outputs || !format.classifies) {
    prediction.mutable_outputs()->Add(output, output + shape.elements());
    RestoreScale(format, prediction.mutable_outputs());
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
  const auto fill = [&](int64_t i, v1::ClassScore& score) {
    score.set_index(i);
    score.set_probability(probabilities[i]);
    if (i < static_cast<int64_t>(format.class_names.size())) score.set_name(format.class_names[i]);
  };
  if (true_class >= 0 && true_class < classes) fill(*true_class, *prediction.mutable_true_class());
  std::partial_sort(order.begin(), order.begin() + wanted, order.end(),
                    [&](int64_t a, int64_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  for (int64_t i = 0; i < wanted; ++i) fill(order[i], *prediction.add_classes());
  return prediction;
}

absl::Status PredictSamples(const ModelSamples& samples, const PredictionFormat& format, Predictor& predictor,
                            absl::FunctionRef<absl::Status(v1::Prediction prediction)> use) {
  const DatasetInfo& info = samples.data.info;
  const int64_t size = samples.samples->size();
  const bool has_class = info.target_type == TargetKind::kClass && info.target_shape.rank() == 0;
  const bool has_values = info.target_type == TargetKind::kValues;
  const int64_t values = info.target_shape.elements();
  std::vector<uint32_t> indices;
  for (int64_t begin = 0; begin < size; begin += Predictor::kBatch) {
    const int64_t count = std::min(Predictor::kBatch, size - begin);
    indices.resize(count);
    std::iota(indices.begin(), indices.end(), static_cast<uint32_t>(begin));
    Tensor input(DTypeOfSamples(info.sample_type), info.shape.Batched(count));
    Tensor targets(DTypeOfTargets(info.target_type), info.target_shape.Batched(count));
    const absl::Status read = samples.samples->Gather(indices, input.raw_data(), targets.raw_data());
    if (absl::IsInvalidArgument(read)) return FieldError("dataset", read.message());
    TANDEM_RETURN_IF_ERROR(read);
    TANDEM_ASSIGN_OR_RETURN(const Tensor outputs, predictor.Run(input));
    const absl::Span<const int64_t> extents = outputs.shape().extents();
    const Shape shape(std::vector<int64_t>(extents.begin() + 1, extents.end()));
    for (int64_t i = 0; i < count; ++i) {
      std::optional<int64_t> true_class;
      if (has_class) true_class = targets.data<int32_t>()[i];
      v1::Prediction prediction =
          MakePrediction(shape, outputs.data<float>().data() + i * shape.elements(), format, true_class);
      prediction.set_sample(begin + i);
      if (has_values) {
        const float* const target = targets.data<float>().data() + i * values;
        prediction.mutable_targets()->Add(target, target + values);
        RestoreScale(format, prediction.mutable_targets());
      } else if (has_class && !format.classifies) {
        // The output is a logit of the second class.
        prediction.add_targets(static_cast<float>(*true_class));
      }
      TANDEM_RETURN_IF_ERROR(use(std::move(prediction)));
    }
  }
  return absl::OkStatus();
}

bool Classifies(const v1::Loss& loss) {
  return loss.has_softmax_cross_entropy() || loss.has_negative_log_likelihood() || loss.has_hinge();
}

}  // namespace tandem
