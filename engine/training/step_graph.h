#ifndef TANDEM_ENGINE_TRAINING_STEP_GRAPH_H_
#define TANDEM_ENGINE_TRAINING_STEP_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "engine/data/dataset.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/dropout.h"
#include "engine/layers/layer_kind.h"
#include "engine/tensor/dtype.h"
#include "engine/training/gradient_reduction.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Inputs of step graphs, in this order. First samples and targets, [samples, ...], with the types of
// DatasetInfo. A graph without samples has neither. resident_data.h has the inputs for samples on the device.
// A training graph then takes the learning rate, float64 [], and the number of earlier steps, int64 [] (see
// StepOfPart).
inline constexpr char kSamplesInput[] = "input";
inline constexpr char kTargetInput[] = "target";
inline constexpr char kLearningRateInput[] = "learning_rate";
inline constexpr char kStepInput[] = "step";

// Meters, as in engine/metrics/meter.h. Graphs add to them. The reader clears them.
inline constexpr char kTrainingMeter[] = "meter/training";
inline constexpr char kValidationMeter[] = "meter/validation";

// A graph, with the network's parameters and statistics.
struct StepGraph {
  Graph graph;
  std::vector<Parameter> parameters;
  std::vector<Statistic> statistics;
};

// The work of a replica in a step.
struct StepShape {
  int64_t samples = 0;            // Of this replica. May be 0.
  int64_t first_sample = 0;       // The place of its first sample in the whole batch.
  int64_t batch_samples = 0;      // Of all replicas.
  int replicas = 1;               // The number of replicas that reduce together.
  int rank = 0;                   // Among these replicas.
  DType dtype = DType::kFloat32;  // Of parameters and activations.
  // If this shape is one of several parts that are computed in turn: the replica's samples in the whole
  // batch. 0 if it is the only part.
  int64_t share_samples = 0;
  // Another part follows: only add up the gradients.
  bool is_early = false;
  // Gather samples on the device. See resident_data.h.
  bool resident = false;
};

// Returns the parts of a replica's share `whole` of a batch, in order: at most `count`, with nearly equal
// sizes. Early parts of the same size are equal, so a single graph serves them.
std::vector<StepShape> PartsOf(const StepShape& whole, int64_t count);
// Returns the value of the step input for part `part` of `parts`. `first` is the number of samples of the
// share before the part. A sample's random numbers depend on the sample's place in the whole batch. The last
// part's graph is built with its place. Early parts share a graph, so the step input also tells this graph
// the part's place.
inline int64_t StepOfPart(int64_t step, size_t part, size_t parts, int64_t first) {
  return part + 1 < parts ? DropoutOp::StepInput(step, first) : step;
}

// The prefix of the variables that add up the gradients of a batch's parts: "gradient_sum/<parameter>". Zero
// between steps.
inline constexpr char kGradientSumPrefix[] = "gradient_sum/";
// The sum of the weights of the batch's earlier parts: [], zero between steps. For weighted losses alone.
inline constexpr char kLossWeightSum[] = "loss_weight_sum";
// The prefix of moving averages. "ema/<parameter>" is optimizer state, "ema/<statistic>" a replica's own
// statistic.
inline constexpr char kAveragePrefix[] = "ema/";

// Optimizer state of a scaled loss (PRECISION_FLOAT16): the scale, the good steps since its last change, and
// the skipped steps, which the optimizer does not count. See UnscaleGradientsOp.
inline constexpr char kLossScale[] = "loss_scaling/scale";
inline constexpr char kGoodSteps[] = "loss_scaling/good_steps";
inline constexpr char kSkippedSteps[] = "loss_scaling/skipped_steps";
// Returns whether a training may continue from a checkpoint without this variable, and the reverse: it
// belongs to loss scaling or to the compression of gradients.
inline bool MayBeMissing(absl::string_view variable) {
  return absl::StartsWith(variable, "loss_scaling/") || IsOfCompression(variable);
}
// The skipped steps since the last read: float64 [1].
inline constexpr char kSkippedMeter[] = "meter/skipped_steps";

// Builds a training step: normalise, forward, loss, backward, update, moving average, meter. With several
// replicas, the backward pass has the all-reduce of each bucket (gradient_reduction.h). Without samples, the
// graph reduces zeros as often as the other replicas reduce, and updates.
//
// The gradient is that of the mean loss of the whole batch. A weighted mean is divided by the weights of all
// the batch's samples, over all replicas and parts. An early part stops after adding up its gradients. The
// last part reduces the sum.
//
// If the loss is scaled, the gradients of the whole batch are divided by the scale. If they are not finite,
// no parameter, optimizer state or moving average changes. All replicas that reduce together agree on this.
//
// `spec` has its defaults and was checked against `data`. INVALID_ARGUMENT with fields relative to the
// JobSpec if a tensor would be too large.
absl::StatusOr<StepGraph> BuildTrainingGraph(const v1::JobSpec& spec, const DatasetInfo& data,
                                             const StepShape& shape);

// Builds a validation step: normalise, forward, loss, meter, for `samples` samples, at least 1. If
// `resident`, samples are gathered on the device. The graph's only output is the network's output if metrics
// need an Evaluator. Otherwise it has no output.
absl::StatusOr<StepGraph> BuildValidationGraph(const v1::JobSpec& spec, const DatasetInfo& data,
                                               int64_t samples, DType dtype, bool resident = false);

// Returns whether the finished model's batch_norm layers get the statistics of an epoch's samples.
inline bool WantsPopulationStatistics(const v1::JobSpec& spec) {
  return spec.training().batch_norm_statistics() == v1::BATCH_NORM_STATISTICS_POPULATION;
}

// Builds normalise and forward as in training, without the rest. A run sets the running statistics of trained
// batch_norm layers to the batch's own mean and unbiased variance. Its inputs are those of a training graph
// without the learning rate. Without samples, the graph only joins the all-reduces of the other replicas, and
// may have no nodes. Ignores `shape.is_early`.
absl::StatusOr<StepGraph> BuildStatisticsGraph(const v1::JobSpec& spec, const DatasetInfo& data,
                                               const StepShape& shape);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_STEP_GRAPH_H_
