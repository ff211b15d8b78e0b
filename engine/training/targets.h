#ifndef TANDEM_ENGINE_TRAINING_TARGETS_H_
#define TANDEM_ENGINE_TRAINING_TARGETS_H_

#include "engine/data/dataset.h"
#include "engine/tensor/target.h"

namespace tandem {

constexpr TargetKind KindOf(TargetType type) {
  switch (type) {
    case TargetType::kClass:
      return TargetKind::kClass;
    case TargetType::kValues:
      return TargetKind::kValues;
    case TargetType::kTokens:
      return TargetKind::kTokens;
    case TargetType::kClassProbabilities:
      break;
  }
  return TargetKind::kClassProbabilities;
}

// What losses and metrics know of a data set's targets, in training and in validation.
inline Target TrainingTargetOf(const DatasetInfo& data) {
  return {KindOf(data.train_target_type()), data.train_target_shape(), data.classes};
}
inline Target ValidationTargetOf(const DatasetInfo& data) {
  return {KindOf(data.target_type), data.target_shape, data.classes};
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TARGETS_H_
