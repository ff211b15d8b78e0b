#ifndef TANDEM_TESTS_GOLDEN_LABELS_H_
#define TANDEM_TESTS_GOLDEN_LABELS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// That int64 labels lie in [0, classes). UNIMPLEMENTED for a negative one, which is PyTorch's ignore_index.
absl::Status CheckLabels(const Tensor& labels, int64_t classes);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_LABELS_H_
