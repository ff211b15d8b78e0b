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
#include "tandem/v1/job.pb.h"

namespace tandem {

// Inputs of step graphs, in this order: samples and targets, [samples, ...], of the types that DatasetInfo
// says, which a graph of no samples does not have, or, in their place, what resident_data.h says; then, for
// training, float64 [] and int64 [], the steps taken before (see StepOfPart).
inline constexpr char kSamplesInput[] = "input";
inline constexpr char kTargetInput[] = "target";
inline constexpr char kLearningRateInput[] = "learning_rate";
inline constexpr char kStepInput[] = "step";

// Meters, as engine/metrics/meter.h has them. Graphs add to them; whoever reads them clears them.
inline constexpr char kTrainingMeter[] = "meter/training";
inline constexpr char kValidationMeter[] = "meter/validation";

// A graph, and the network's parameters and statistics in it.
struct StepGraph {
  Graph graph;
  std::vector<Parameter> parameters;
  std::vector<Statistic> statistics;
};

// What one replica computes of one step.
struct StepShape {
  int64_t samples = 0;            // Its own; may be 0.
  int64_t first_sample = 0;       // The place of the first of them in the whole batch.
  int64_t batch_samples = 0;      // Of all replicas.
  int replicas = 1;               // That reduce together.
  int rank = 0;                   // Of them.
  DType dtype = DType::kFloat32;  // Of parameters and activations.
  // Of the replica's samples in the whole batch, where this is one of several parts of them that are computed
  // one after the other; 0 where it is all of them.
  int64_t share_samples = 0;
  // Another part follows: gradients are added up, and no more.
  bool is_early = false;
  // Samples are gathered on the device: see resident_data.h.
  bool resident = false;
};

// The parts in which a replica computes its share of a batch, `whole`, in their order: at most `count`, of
// nearly equal sizes. Early parts of one size are equal: one graph serves them all.
std::vector<StepShape> PartsOf(const StepShape& whole, int64_t count);
// The step input of the part `part` of `parts`, before which the share has `first` samples. The graph of the
// last part knows its place. One graph may serve several of the others, so their input says the place: random
// numbers of a sample depend on its place in the whole batch, whatever the parts are.
inline int64_t StepOfPart(int64_t step, size_t part, size_t parts, int64_t first) {
  return part + 1 < parts ? DropoutOp::StepInput(step, first) : step;
}

// Where the gradients of a batch's parts are added up: "gradient_sum/<parameter>", zero between steps.
inline constexpr char kGradientSumPrefix[] = "gradient_sum/";
// The sum of the weights of the batch's earlier parts: [], zero between steps. Of weighted losses alone.
inline constexpr char kLossWeightSum[] = "loss_weight_sum";
// Where moving averages are kept: "ema/<parameter>", as the optimizer's state, and "ema/<statistic>", as a
// replica's own statistic.
inline constexpr char kAveragePrefix[] = "ema/";

// Where the loss is scaled (PRECISION_FLOAT16), in the optimizer's state: the scale, and the good steps since
// it was changed; the steps that were left out, which the optimizer does not count. See UnscaleGradientsOp.
inline constexpr char kLossScale[] = "loss_scaling/scale";
inline constexpr char kGoodSteps[] = "loss_scaling/good_steps";
inline constexpr char kSkippedSteps[] = "loss_scaling/skipped_steps";
// Whether a variable is one of these: a training may go on from a checkpoint of one without them, or the
// other way round.
inline bool IsOfLossScaling(absl::string_view variable) {
  return absl::StartsWith(variable, "loss_scaling/");
}
// The steps that were left out since somebody read it: float64 [1].
inline constexpr char kSkippedMeter[] = "meter/skipped_steps";

// Normalise, forward, loss, backward with the all-reduce of each bucket in it (see gradient_reduction.h)
// where there are several replicas, update, moving average, meter. With no samples: reduce zeros, as often as
// the others reduce something, and update. Where the loss is scaled, gradients are brought back to their size
// when they are those of the whole batch, and where they are not finite no parameter, state of the optimizer
// or moving average changes: all replicas that reduce together find the same.
// The gradient is that of the mean loss of the whole batch. With weights, the mean is divided by the weights
// of all the batch's samples, whichever replica and part they are in. An early part: the same up to the
// gradients, which are added up; the last part reduces the sum. `spec` has its defaults and was checked
// against `data`. INVALID_ARGUMENT with fields relative to the JobSpec where a tensor would be too large.
absl::StatusOr<StepGraph> BuildTrainingGraph(const v1::JobSpec& spec, const DatasetInfo& data,
                                             const StepShape& shape);

// Normalise, forward, loss, meter, for `samples` samples, at least 1, which with `resident` are gathered on
// the device. The graph's first output is the network's where metrics need an Evaluator; otherwise it has
// none.
absl::StatusOr<StepGraph> BuildValidationGraph(const v1::JobSpec& spec, const DatasetInfo& data,
                                               int64_t samples, DType dtype, bool resident = false);

// Whether the finished model's batch_norm layers have the statistics of all training samples.
inline bool WantsPopulationStatistics(const v1::JobSpec& spec) {
  return spec.training().batch_norm_statistics() == v1::BATCH_NORM_STATISTICS_POPULATION;
}

// Normalise and forward as in training, and no more: a run of it leaves, as the running statistics of the
// batch_norm layers that are trained, the batch's own mean and unbiased variance. Its inputs are those of a
// training graph without the learning rate. With no samples, for replicas that have none where others have:
// what these all-reduce; a graph without nodes where that is nothing. `shape.is_early` is of no account.
absl::StatusOr<StepGraph> BuildStatisticsGraph(const v1::JobSpec& spec, const DatasetInfo& data,
                                               const StepShape& shape);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_STEP_GRAPH_H_
