#ifndef TANDEM_ENGINE_TRAINING_TRAINER_FIXTURE_H_
#define TANDEM_ENGINE_TRAINING_TRAINER_FIXTURE_H_

#include <string>

#include "absl/status/status.h"
#include "engine/training/small_training.h"
#include "engine/training/trainer.h"

namespace tandem {

// For a job on devices of `kind`, "cpu" or "reference": one a replica, each with one thread.
Trainer::Options OptionsFor(const v1::JobSpec& spec, const std::string& kind, TrainerObserver* observer);

// Trains to the end, and saves the model where `model_path` is given.
absl::Status Train(const v1::JobSpec& spec, const std::string& kind, TrainingRecorder* recorder,
                   const std::string& model_path = "");

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TRAINER_FIXTURE_H_
