#ifndef TANDEM_ENGINE_TRAINING_EVALUATION_H_
#define TANDEM_ENGINE_TRAINING_EVALUATION_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/backend/device.h"
#include "engine/training/trained_model.h"
#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// A part of a data set.
enum class Split {
  kDefault,  // The validation samples, or the training samples where there are no others.
  kTraining,
  kValidation,
};

// What a trained model is measured on.
struct EvaluationRequest {
  // With its source. Columns, classes and characters are matched to the model's by name, and samples are
  // normalised as the model's own.
  v1::DatasetSpec dataset;
  Split split = Split::kDefault;
  std::vector<v1::Metric> metrics;  // None: the job's.
  int64_t batch_size = 0;           // 0: the job's validation_batch_size.
  int64_t memory_bytes = 0;         // The most that may be taken, as planned; 0: any.
  // Hears how many samples are done and how many there are, after each batch. May be null.
  std::function<void(int64_t done, int64_t samples)> on_progress;
  // Hears a sentence about how the data were matched, if a person may not expect it. May be null.
  std::function<void(absl::string_view)> on_notice;
};

// Loss and metrics over all samples. They are dealt as the job deals its validation samples to its replicas,
// and added up in the same order, so that on the job's own validation samples and a device like its own the
// result is the job's own, bit for bit. INVALID_ARGUMENT with the fields at fault, such as a class that the
// model does not know
// ("dataset.idx.train_images", "split", "metrics[0]"); RESOURCE_EXHAUSTED where it takes more memory than
// allowed.
absl::StatusOr<v1::Evaluation> EvaluateModel(const TrainedModel& model, const EvaluationRequest& request,
                                             Device& device);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_EVALUATION_H_
