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

// What a batch is measured by, in a graph. `loss_sum` and `loss_weight`, where the loss is a weighted mean,
// are what it is the quotient of; otherwise kNoValue.
struct MeteredValues {
  ValueId output = kNoValue;  // The network's, a batch.
  ValueId target = kNoValue;
  ValueId loss = kNoValue;
  ValueId loss_sum = kNoValue;
  ValueId loss_weight = kNoValue;
};

// The shape of a job's meter, float64: the sum of the losses, what they weigh, the number of samples (of
// positions, where targets are tokens; without those that are ignored), then each metered metric's sum over
// these, in the order of Training.metrics. Sums of several batches and replicas add up.
Shape MeterShape(const v1::Training& training);

// Appends the metrics of a batch, and what adds them to `meter`, a variable.
absl::Status AddToMeter(const v1::Training& training, const MeteredValues& values, ValueId meter,
                        Graph& graph);

// Whether a meter's sums have a loss: whether any sample that was measured weighs something.
bool HasLoss(absl::Span<const double> sums);
// Sets the loss and each metered metric, by its name, to what a meter's sums say. Without a loss, it is not a
// number. If no sample counts, as when all labels are ignored, there are no metrics.
void ReadMeter(const v1::Training& training, absl::Span<const double> sums, v1::Evaluation* evaluation);

}  // namespace tandem

#endif  // TANDEM_ENGINE_METRICS_METER_H_
