#ifndef TANDEM_ENGINE_METRICS_METER_H_
#define TANDEM_ENGINE_METRICS_METER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// The values of a batch that metrics need. `loss_sum` and `loss_weight` are the parts of a weighted mean,
// else kNoValue.
struct MeteredValues {
  ValueId output = kNoValue;  // The network's output for a batch.
  ValueId target = kNoValue;
  ValueId loss = kNoValue;
  ValueId loss_sum = kNoValue;
  ValueId loss_weight = kNoValue;
};

// Returns the shape of a job's meter, float64. It has the sum of the losses, the sum of their weights and the
// number of samples. For tokens it counts positions. Ignored samples do not count. Then it has each metered
// metric's sum, in the order of Training.metrics. The sums of batches and replicas add up.
Shape MeterShape(const v1::Training& training);

// Appends the metrics of a batch, and adds them to `meter`, a variable.
absl::Status AddToMeter(const v1::Training& training, const MeteredValues& values, ValueId meter,
                        Graph& graph);

// Returns whether a meter's sums have a loss: whether any measured sample has a weight.
bool HasLoss(absl::Span<const double> sums);
// Sets the loss and each metered metric, by name, from a meter's sums. Without HasLoss the loss is NaN. If no
// sample counts, for example because all labels are ignored, there are no metrics.
void ReadMeter(const v1::Training& training, absl::Span<const double> sums, v1::Evaluation* evaluation);

// Brings the loss, the mean absolute error and the root mean squared error to the scale of the data, if the
// network's targets are (target - mean) / deviation. huber and smooth_l1 are then as with delta or beta times
// the deviation. Other losses and metrics stay. Does nothing if `deviation` is 0.
void RestoreTargetScale(const v1::Training& training, double deviation, v1::Evaluation* evaluation);

}  // namespace tandem

#endif  // TANDEM_ENGINE_METRICS_METER_H_
