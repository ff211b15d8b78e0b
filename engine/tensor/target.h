#ifndef TANDEM_ENGINE_TENSOR_TARGET_H_
#define TANDEM_ENGINE_TENSOR_TARGET_H_

#include <cstdint>

#include "engine/tensor/shape.h"

namespace tandem {

// What a network's outputs are compared with.
enum class TargetKind : uint8_t {
  kClass,               // int32 [batch].
  kValues,              // Numbers [batch, extents...].
  kTokens,              // int32 [batch, length]: the next token at each position.
  kClassProbabilities,  // Numbers [batch, classes], adding up to 1 each.
};

// The targets of a data set's samples.
struct Target {
  TargetKind kind = TargetKind::kClass;
  Shape shape;          // Of one sample's: [] for a class, [extents...], [length], [classes].
  int64_t classes = 0;  // Or tokens of the vocabulary; 0 for values.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TENSOR_TARGET_H_
