#ifndef TANDEM_ENGINE_TENSOR_TARGET_H_
#define TANDEM_ENGINE_TENSOR_TARGET_H_

#include <cstdint>
#include <optional>

#include "engine/tensor/shape.h"

namespace tandem {

// The kind of values with which a network's outputs are compared. The targets of a batch, one after the
// other, are the step graph's `target`.
enum class TargetKind : uint8_t {
  kClass,               // int32 [batch], from 0 to below the number of classes, or the ignored number.
  kValues,              // float32 [batch, extents...]: regression, or several labels.
  kTokens,              // int32 [batch, length], from 0 to below the number of classes: the next tokens.
  kClassProbabilities,  // float32 [batch, classes]. Each row adds up to 1. Of mixed training samples.
};

// The form of the targets of a data set.
struct Target {
  TargetKind kind = TargetKind::kClass;
  Shape shape;          // Of a single sample: [] for a class, [extents...], [length] or [classes].
  int64_t classes = 0;  // The number of classes or of tokens in the vocabulary. 0 for values.
  // A negative number that targets hold in place of a class. The loss must ignore it.
  std::optional<int32_t> ignored = std::nullopt;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TENSOR_TARGET_H_
