#ifndef TANDEM_ENGINE_TRAINING_PREDICTION_H_
#define TANDEM_ENGINE_TRAINING_PREDICTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/backend/device.h"
#include "engine/data/dataset.h"
#include "engine/graph/graph.h"
#include "engine/tensor/tensor.h"
#include "engine/training/model_samples.h"
#include "engine/training/trained_model.h"
#include "tandem/v1/prediction.pb.h"

namespace tandem {

// Returns the graph that predicts for a batch of `samples`. Its only input is "input", [samples, ...] with
// the dtype of `type` and the model's shape. Its only output is the network's, in `dtype`.
absl::StatusOr<Graph> BuildPredictionGraph(const TrainedModel& model, SampleType type, int64_t samples,
                                           DType dtype);

// Computes a trained network's outputs. Used by one thread at a time. Keeps two executables: for kBatch
// samples, and for the latest smaller number.
class Predictor {
 public:
  // The largest number of samples in a run.
  static constexpr int64_t kBatch = 64;

  // For inputs of `type`. `model` and `device` must outlive this object.
  Predictor(const TrainedModel& model, SampleType type, Device& device);

  // Returns the outputs, float32 [samples, ...]. `samples` is [samples, ...] with the type's dtype and the
  // model's shape.
  absl::StatusOr<Tensor> Run(const Tensor& samples);

 private:
  struct Compiled {
    int64_t samples = 0;
    std::unique_ptr<Executable> executable;
  };

  absl::StatusOr<Executable*> ExecutableFor(int64_t samples);

  const TrainedModel& model_;
  const SampleType type_;
  Device& device_;
  const std::unique_ptr<Variables> variables_;
  bool has_weights_ = false;  // The variables have the model's weights.
  Compiled whole_;            // For kBatch samples.
  Compiled part_;             // For fewer samples.
};

// The form of a prediction.
struct PredictionFormat {
  bool classifies = true;  // The last dimension of the output has a logit for each class.
  int top_k = 5;           // For a classifier.
  bool outputs = false;
  std::vector<std::string> class_names;
  // Outputs are output * target_deviation + target_mean, unless target_deviation is 0.
  double target_mean = 0;
  double target_deviation = 0;
};

// Returns the prediction of a single sample. If the output has several positions, as in a language model, the
// classes are those of the last position. Also returns the probability of `true_class`, if it is a class.
v1::Prediction MakePrediction(const Shape& shape, const float* output, const PredictionFormat& format,
                              std::optional<int64_t> true_class = std::nullopt);

// Calls `use` with the prediction of each sample, in order, with the sample's number and target. Returns the
// first error of `use`. INVALID_ARGUMENT with the field "dataset": samples cannot be read.
absl::Status PredictSamples(const ModelSamples& samples, const PredictionFormat& format, Predictor& predictor,
                            absl::FunctionRef<absl::Status(v1::Prediction prediction)> use);

// Returns whether a job's network gives a logit for each class.
bool Classifies(const v1::Loss& loss);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_PREDICTION_H_
