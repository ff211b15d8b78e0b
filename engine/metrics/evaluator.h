#ifndef TANDEM_ENGINE_METRICS_EVALUATOR_H_
#define TANDEM_ENGINE_METRICS_EVALUATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "engine/tensor/target.h"
#include "engine/tensor/tensor.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// Computes the metrics that meters cannot, on the host, from the network's outputs: precision, recall, F1,
// the confusion matrix, the area under the curve and R2. The results do not depend on the order of samples,
// except for the rounding of R2. A value type. Thread-compatible.
class Evaluator {
 public:
  // Returns whether the metrics need an evaluator.
  static bool IsNeeded(const v1::Training& training);

  // Returns the largest memory of all replicas' evaluators for this number of samples.
  static int64_t HostBytes(const v1::Training& training, const Target& target, int64_t samples);

  // The targets have passed CheckMetricTargets.
  Evaluator(const v1::Training& training, const Target& target);

  // Adds a batch: its outputs, float32 or float64, and its targets, int32 [batch] or float32 with the
  // outputs' shape.
  void Add(const Tensor& outputs, const void* targets);

  // Adds the samples of another evaluator of the same job.
  void Merge(const Evaluator& other);

  // ToNumbers returns the whole state as numbers that a double represents exactly. FromNumbers replaces the
  // state by the numbers of another evaluator of the same job.
  std::vector<double> ToNumbers() const;
  void FromNumbers(absl::Span<const double> numbers);

  // Sets the requested metrics, by name, and `classification`. Means cover the classes that are not ignored
  // and that have a sample or a prediction. A mean of no classes is left out.
  void Fill(v1::Evaluation* evaluation) const;

 private:
  void AddClasses(absl::Span<const double> outputs, absl::Span<const int32_t> labels);
  void AddSides(absl::Span<const double> outputs, int64_t samples, bool classes, const void* targets);
  void AddValues(absl::Span<const double> outputs, const float* targets);
  void Count(int64_t target, int64_t given);
  // Returns the area of a class or output, or nothing if it is undefined.
  std::optional<double> Area(int64_t i) const;

  bool asked(v1::Metric metric) const { return asked_[static_cast<size_t>(metric)]; }

  v1::Training training_;
  std::vector<bool> asked_;  // By metric.
  const bool sides_;         // Each output is on a side of 0. Otherwise the outputs are scores of classes.
  const bool labelled_;      // Targets are int32.
  int64_t classes_ = 0;      // For sides: 2.
  std::optional<int64_t> ignore_index_;

  std::vector<int64_t> right_;   // By class: correct predictions.
  std::vector<int64_t> given_;   // By class: predictions.
  std::vector<int64_t> own_;     // By class: samples.
  std::vector<int64_t> matrix_;  // [own][given], if requested.
  // For the area under the curve: scores [samples][score_columns_]. Each sample has its class, or each score
  // says whether its target is 1.
  int64_t score_columns_ = 0;
  std::vector<float> scores_;
  std::vector<int32_t> score_classes_;
  std::vector<bool> score_sides_;
  // For R2: the number of targets, their mean, the sum of their squared distances from it, and the sum of
  // (output - target)^2. Empty for other targets.
  std::vector<double> values_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_METRICS_EVALUATOR_H_
