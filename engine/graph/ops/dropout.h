#ifndef TANDEM_ENGINE_GRAPH_OPS_DROPOUT_H_
#define TANDEM_ENGINE_GRAPH_OPS_DROPOUT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/philox.h"
#include "engine/graph/op.h"

namespace tandem {

// dropout(x [N, ...], step int64 []) -> y = x / (1 - rate), or 0 with probability `rate` (Srivastava et al.
// 2014). Element e of sample n, in row-major order, stays if word e of its random sequence is at least rate
// 2^32. The sequence is (seed, kDropout, step, first_sample + n), so the result does not depend on the parts
// of a batch. The gradient is the same op: the same seed and step drop the same elements.
class DropoutOp final : public Op {
 public:
  DropoutOp(double rate, uint64_t seed, int64_t first_sample)
      : rate(rate), seed(seed), first_sample(first_sample) {}
  absl::string_view kind() const override { return "dropout"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  // The number of low bits of the step input that hold the step. The upper bits hold a number of samples,
  // which is added to first_sample. So a single graph serves several parts of a batch. The upper 28 bits are
  // enough for any batch.
  static constexpr int kStepBits = 35;
  // Returns the step input for a graph whose samples begin `samples` places after first_sample.
  static constexpr int64_t StepInput(int64_t step, int64_t samples) { return step + (samples << kStepBits); }

  // Returns the random sequence of a sample. `step` is the step input.
  RandomStream WordsOf(int64_t step, int64_t sample) const {
    const uint64_t whole = static_cast<uint64_t>(step);
    return RandomStream(seed, RandomPurpose::kDropout, whole & ((uint64_t{1} << kStepBits) - 1),
                        static_cast<uint64_t>(first_sample + sample) + (whole >> kStepBits));
  }
  // Returns the least word of an element that stays.
  uint64_t threshold() const;
  // Returns the factor of an element that stays.
  double scale() const { return 1 / (1 - rate); }

  double rate;  // In [0, 1).
  uint64_t seed;
  int64_t first_sample;  // The place of sample 0 in the whole batch.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_DROPOUT_H_
