#ifndef TANDEM_ENGINE_TRAINING_EVALUATION_H_
#define TANDEM_ENGINE_TRAINING_EVALUATION_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/backend/device.h"
#include "engine/training/model_samples.h"
#include "engine/training/trained_model.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// A request to measure a trained model.
struct EvaluationRequest {
  SampleChoice samples;
  std::vector<v1::Metric> metrics;  // Empty: the job's.
  int64_t batch_size = 0;           // 0: the job's validation_batch_size.
  int64_t memory_bytes = 0;         // The limit on planned memory. 0: none.
  // Called after each batch with the measured samples and the total. May be null.
  std::function<void(int64_t done, int64_t samples)> on_progress;
};

// Measures loss and metrics over all samples. Samples are dealt and added up in the same order as by the
// job's replicas. So the job's validation samples on an equal device give the job's result, bit for bit.
// INVALID_ARGUMENT with the wrong fields ("dataset.idx.train_images", "split", "metrics[0]"), for example if
// the model does not know a class. RESOURCE_EXHAUSTED if the plan needs more memory than allowed.
absl::StatusOr<v1::Evaluation> EvaluateModel(const TrainedModel& model, const EvaluationRequest& request,
                                             Device& device);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_EVALUATION_H_
