#ifndef TANDEM_ENGINE_GRAPH_OPS_DROPOUT_H_
#define TANDEM_ENGINE_GRAPH_OPS_DROPOUT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/philox.h"
#include "engine/graph/op.h"

namespace tandem {

// dropout(x [N, ...], step int64 []) -> y = x / (1 - rate), or 0 with the probability `rate` (Srivastava et
// al. 2014). Element e of sample n, in row-major order, stays where word e of the random numbers of (seed,
// kDropout, step, first_sample + n) is at least rate 2^32: it does not depend on how a batch is cut. The
// gradient is the same op: equal seeds and steps drop equal elements.
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

  // Bits of the step input that are the step, from the lowest. The bits above are a number of samples, which
  // is added to first_sample. So one graph serves several parts of a batch. 28 bits are left, enough for any
  // batch.
  static constexpr int kStepBits = 35;
  // The step input for a graph whose samples come `samples` places behind first_sample.
  static constexpr int64_t StepInput(int64_t step, int64_t samples) { return step + (samples << kStepBits); }

  // The words of a sample, by the step input.
  RandomStream WordsOf(int64_t step, int64_t sample) const {
    const uint64_t whole = static_cast<uint64_t>(step);
    return RandomStream(seed, RandomPurpose::kDropout, whole & ((uint64_t{1} << kStepBits) - 1),
                        static_cast<uint64_t>(first_sample + sample) + (whole >> kStepBits));
  }
  // The least word of an element that stays.
  uint64_t threshold() const;
  // What an element that stays is multiplied with.
  double scale() const { return 1 / (1 - rate); }

  double rate;  // From 0 to below 1.
  uint64_t seed;
  int64_t first_sample;  // The place in the whole batch of sample 0.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_DROPOUT_H_
