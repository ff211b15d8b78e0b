#ifndef TANDEM_ENGINE_TRAINING_MODEL_SAMPLES_H_
#define TANDEM_ENGINE_TRAINING_MODEL_SAMPLES_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/dataset.h"
#include "engine/training/trained_model.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// A part of a data set.
enum class Split {
  kDefault,  // The validation samples, or the training samples if there are none.
  kTraining,
  kValidation,
};

// The samples that a trained model is asked about.
struct SampleChoice {
  // The data, with their source.
  v1::DatasetSpec dataset;
  // Whether `dataset` is the data set that the model was trained on.
  bool is_own_dataset = false;
  Split split = Split::kDefault;
  // Called with a sentence if data were matched in an unexpected way. Also called if the training samples are
  // used although `split` does not ask for them. May be null.
  std::function<void(absl::string_view)> on_notice;
};

// An opened data set with the part that was chosen.
struct ModelSamples {
  OpenedDataset data;
  const Dataset* samples = nullptr;  // data.train or data.validation.
};

// Opens a data set for a trained model. Columns, classes and characters are matched to the model's by name.
// The normalization is the model's. INVALID_ARGUMENT with the wrong field ("dataset.idx.train_images",
// "split"), for example if the samples do not have the type and shape of the model's.
absl::StatusOr<ModelSamples> OpenModelSamples(const TrainedModel& model, const SampleChoice& choice);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_MODEL_SAMPLES_H_
