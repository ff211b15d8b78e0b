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

// Measures on the host what no meter measures: precision, recall, F1, the confusion matrix, and the area
// under the curve, from the network's outputs. What it finds does not depend on the order of samples. A
// value; thread-compatible.
class Evaluator {
 public:
  // Whether the metrics want one.
  static bool IsNeeded(const v1::Training& training);

  // The most memory that those of all replicas take, for so many samples.
  static int64_t HostBytes(const v1::Training& training, const Target& target, int64_t samples);

  // Of outputs for targets that CheckMetricTargets has found good.
  Evaluator(const v1::Training& training, const Target& target);

  // The outputs of a batch, float32 or float64, and its targets, int32 [batch] or float32 of the outputs'
  // shape.
  void Add(const Tensor& outputs, const void* targets);

  // Adds what another of the same job was given.
  void Merge(const Evaluator& other);

  // All that it was given, as numbers that a double has exactly, and from them in place of what this one was
  // given: they are those of one of the same job.
  std::vector<double> ToNumbers() const;
  void FromNumbers(absl::Span<const double> numbers);

  // Sets the metrics that are asked for, by their names, and `classification`. Means are over the classes
  // that are not ignored and that a sample has or was given. A mean of no classes is left out.
  void Fill(v1::Evaluation* evaluation) const;

 private:
  void AddClasses(absl::Span<const double> outputs, absl::Span<const int32_t> labels);
  void AddSides(absl::Span<const double> outputs, int64_t samples, bool classes, const void* targets);
  void Count(int64_t target, int64_t given);
  // Of one class or output; none where that cannot be said.
  std::optional<double> Area(int64_t i) const;

  bool asked(v1::Metric metric) const { return asked_[static_cast<size_t>(metric)]; }

  v1::Training training_;
  std::vector<bool> asked_;  // By metric.
  const bool sides_;         // Outputs are each on a side of 0; otherwise they are a score for each class.
  const bool labelled_;      // Targets are int32.
  int64_t classes_ = 0;      // Of sides: 2.
  std::optional<int64_t> ignore_index_;

  std::vector<int64_t> right_;   // By class: given and its own.
  std::vector<int64_t> given_;   // By class: given, right or wrong.
  std::vector<int64_t> own_;     // By class: of it.
  std::vector<int64_t> matrix_;  // [own][given], where it is asked for.
  // For the area under the curve: scores [samples][score_columns_], and for each sample its class, or for
  // each score whether its target is 1.
  int64_t score_columns_ = 0;
  std::vector<float> scores_;
  std::vector<int32_t> score_classes_;
  std::vector<bool> score_sides_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_METRICS_EVALUATOR_H_
