#ifndef TANDEM_ENGINE_TRAINING_PREDICTION_H_
#define TANDEM_ENGINE_TRAINING_PREDICTION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/backend/device.h"
#include "engine/data/dataset.h"
#include "engine/tensor/tensor.h"
#include "engine/training/trained_model.h"
#include "tandem/v1/prediction.pb.h"

namespace tandem {

// Computes a trained network's outputs. Used by one thread at a time.
class Predictor {
 public:
  // The most samples that are computed at once.
  static constexpr int64_t kBatch = 64;

  // For inputs of `type`. `model` and `device` outlive it.
  Predictor(const TrainedModel& model, SampleType type, Device& device);

  // The outputs, float32 [samples, ...], of samples [samples, ...] of the type's dtype and the model's shape.
  absl::StatusOr<Tensor> Run(const Tensor& samples);

 private:
  absl::StatusOr<Executable*> ExecutableFor(int64_t samples);

  const TrainedModel& model_;
  const SampleType type_;
  Device& device_;
  const std::unique_ptr<Variables> variables_;
  std::map<int64_t, std::unique_ptr<Executable>> executables_;  // By samples.
};

// How an output is said.
struct PredictionFormat {
  bool classifies = true;  // The output's last dimension has one logit a class.
  int top_k = 5;           // Of a classifier.
  bool outputs = false;
  std::vector<std::string> class_names;
};

// What one sample's output says; of an output of several positions, such as a language model's, the classes
// are those of the last.
v1::Prediction MakePrediction(const Shape& shape, const float* output, const PredictionFormat& format);

// Whether a job's network gives one logit a class.
bool Classifies(const v1::Loss& loss);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_PREDICTION_H_
