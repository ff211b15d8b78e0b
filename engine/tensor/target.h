#ifndef TANDEM_ENGINE_TENSOR_TARGET_H_
#define TANDEM_ENGINE_TENSOR_TARGET_H_

#include <cstdint>
#include <optional>

#include "engine/tensor/shape.h"

namespace tandem {

// The kind of values with which a network's outputs are compared.
enum class TargetKind : uint8_t {
  kClass,               // int32 [batch].
  kValues,              // Numbers [batch, extents...].
  kTokens,              // int32 [batch, length]: the next token at each position.
  kClassProbabilities,  // Numbers [batch, classes]. Each row adds up to 1.
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
