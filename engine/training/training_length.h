#ifndef TANDEM_ENGINE_TRAINING_TRAINING_LENGTH_H_
#define TANDEM_ENGINE_TRAINING_TRAINING_LENGTH_H_

#include <cstdint>

#include "tandem/v1/training.pb.h"

namespace tandem {

// The steps of a training, counted over all epochs. The last epoch may be cut short.
struct TrainingLength {
  int64_t steps_per_epoch = 1;
  int64_t steps = 1;   // In all.
  int64_t epochs = 1;  // The number of begun epochs.
  // Added to a step's number before the number is converted to an epoch. Always 0, unless training continues
  // from a checkpoint whose epochs had another number of steps.
  int64_t epoch_shift = 0;

  // Returns the length for the epochs or steps of `training`.
  static TrainingLength Of(const v1::Training& training, int64_t steps_per_epoch, int64_t epoch_shift = 0) {
    TrainingLength length;
    length.steps_per_epoch = steps_per_epoch;
    length.epoch_shift = epoch_shift;
    length.steps =
        training.steps() > 0 ? training.steps() : training.epochs() * steps_per_epoch - epoch_shift;
    length.epochs = (length.steps + epoch_shift + steps_per_epoch - 1) / steps_per_epoch;
    return length;
  }

  // Returns the epoch, from 1, of the `steps`-th step of all.
  int64_t EpochOf(int64_t steps) const { return (steps + epoch_shift - 1) / steps_per_epoch + 1; }
  // Returns the number of earlier steps in the epoch of `step`.
  int64_t StepOfEpoch(int64_t step) const { return (step + epoch_shift) % steps_per_epoch; }
  // Returns the number of whole epochs after `steps` steps.
  int64_t WholeEpochs(int64_t steps) const { return (steps + epoch_shift) / steps_per_epoch; }
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TRAINING_LENGTH_H_
