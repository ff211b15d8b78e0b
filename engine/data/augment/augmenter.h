#ifndef TANDEM_ENGINE_DATA_AUGMENT_AUGMENTER_H_
#define TANDEM_ENGINE_DATA_AUGMENT_AUGMENTER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "engine/data/dataset.h"
#include "engine/data/sampler.h"
#include "google/protobuf/repeated_field.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// The augmentation of a DatasetSpec.
using Augmentations = google::protobuf::RepeatedPtrField<v1::Augmentation>;

// Returns whether the augmentations turn classes into class probabilities.
bool MixesClasses(const Augmentations& augmentations);

// Checks that the augmentations fit the samples and targets. INVALID_ARGUMENT with the wrong fields, relative
// to the DatasetSpec ("augmentation[1].crop.padding").
absl::Status CheckAugmentation(const Augmentations& augmentations, const DatasetInfo& info);

// Returns `train` with random changes in each epoch, or `train` itself without augmentations. The changes
// depend on the seed, the epoch and the sample's index in the data set alone, and not on replicas or threads.
// The targets have the type DatasetInfo::train_target_type(). `info` describes the data set and passed
// CheckAugmentation.
//
// mixup and cutmix mix a sample with any training sample, all equally likely. If `classes` is given, each of
// its classes is equally likely, and each sample of the class. `classes` has at least one class.
std::unique_ptr<const Dataset> Augment(std::unique_ptr<const Dataset> train,
                                       const Augmentations& augmentations, const DatasetInfo& info,
                                       uint64_t seed, std::shared_ptr<const ClassSamples> classes = nullptr);

// Draws the random numbers of Augment without changing samples. A device applies them with the ops of
// engine/graph/ops/augmentation.h. Thread-safe.
class AugmentationDraws {
 public:
  virtual ~AugmentationDraws() = default;
  // Returns the number of random numbers for a sample: those of the first change, then those of the second,
  // and so on.
  virtual int64_t columns() const = 0;
  // Draws the numbers of sample `index` in epoch `epoch` into `drawn`, which has room for columns() numbers.
  virtual void Draw(int64_t epoch, uint32_t index, double* drawn) const = 0;
};

// Returns the draws of Augment for images of bytes. `augmentations` mix no classes.
std::unique_ptr<const AugmentationDraws> DrawFor(const Augmentations& augmentations, const DatasetInfo& info,
                                                 uint64_t seed);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_AUGMENTER_H_
