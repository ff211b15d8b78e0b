#ifndef TANDEM_ENGINE_DATA_AUGMENT_AUGMENTER_H_
#define TANDEM_ENGINE_DATA_AUGMENT_AUGMENTER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "engine/data/dataset.h"
#include "google/protobuf/repeated_field.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// A DatasetSpec's augmentation.
using Augmentations = google::protobuf::RepeatedPtrField<v1::Augmentation>;

// Whether it makes class probabilities of classes.
bool MixesClasses(const Augmentations& augmentations);

// That the augmentation makes sense for such samples and targets. INVALID_ARGUMENT with the fields at fault,
// relative to the DatasetSpec ("augmentation[1].crop.padding").
absl::Status CheckAugmentation(const Augmentations& augmentations, const DatasetInfo& info);

// `train`, changed at random as `augmentations` say, epoch by epoch; `train` itself where they are none. What
// is drawn follows from the seed, the epoch and the sample's index in the data set alone, so it is the same
// for any number of replicas and threads. Its targets are of DatasetInfo's train_target_type(). `info` is the
// data set's and was checked by CheckAugmentation.
std::unique_ptr<const Dataset> Augment(std::unique_ptr<const Dataset> train,
                                       const Augmentations& augmentations, const DatasetInfo& info,
                                       uint64_t seed);

// What Augment's changes draw, without any change: for a device that makes them by the ops of
// engine/graph/ops/augmentation.h. Thread-safe.
class AugmentationDraws {
 public:
  virtual ~AugmentationDraws() = default;
  // Numbers that are drawn for a sample: those of the first change, then those of the second, and so on.
  virtual int64_t columns() const = 0;
  // Draws those of sample `index` in epoch `epoch`.
  virtual void Draw(int64_t epoch, uint32_t index, double* drawn) const = 0;
};

// As Augment draws for images of bytes; `augmentations` mix no classes.
std::unique_ptr<const AugmentationDraws> DrawFor(const Augmentations& augmentations, const DatasetInfo& info,
                                                 uint64_t seed);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_AUGMENT_AUGMENTER_H_
