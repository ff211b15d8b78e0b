#ifndef TANDEM_ENGINE_TRAINING_TRAINER_FIXTURE_H_
#define TANDEM_ENGINE_TRAINING_TRAINER_FIXTURE_H_

#include <string>

#include "absl/status/status.h"
#include "engine/training/small_training.h"
#include "engine/training/trainer.h"

namespace tandem {

// Returns options for a job on devices of `kind`, "cpu" or "reference": a device with a single thread for
// each replica.
Trainer::Options OptionsFor(const v1::JobSpec& spec, const std::string& kind, TrainerObserver* observer);

// Trains to the end. Saves the model if `model_path` is not empty.
absl::Status Train(const v1::JobSpec& spec, const std::string& kind, TrainingRecorder* recorder,
                   const std::string& model_path = "");

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TRAINER_FIXTURE_H_
