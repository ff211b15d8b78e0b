#ifndef TANDEM_ENGINE_BACKENDS_CUDA_TENSOR_CHANGES_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_TENSOR_CHANGES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/backends/cuda/device_table.h"
#include "engine/backends/cuda/kernels/tensor_changes.h"
#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// Numbers that a tensor is changed by, as they were made.
struct ChangeSource {
  Region region;
  DType type = DType::kFloat32;
};
// Those of a float32 value for a tensor in `layout`: in the compute type where they were made so in the same
// places.
absl::StatusOr<ChangeSource> ChangeSourceOf(Lowering& lowering, ValueId id, const Layout& layout);

// Tensors that one launch is to change. A value, while nodes are lowered.
class TensorChanges {
 public:
  struct Change {
    Region target;
    ChangeSource source = {};
    std::vector<Region> states = {};
    Region number = {};  // None where its buffer is below 0.
    int64_t elements = 0;
    // Whether the target is made of the source alone, and whether it may then take its memory.
    bool is_new = false;
    bool may_replace = false;
  };
  // What the launches of a step take, once the step is bound.
  struct Bound {
    std::unique_ptr<DeviceTable<TensorChange>> tensors;
    std::unique_ptr<DeviceTable<ChangePiece>> pieces;
    ChangeTable table;
  };

  void Add(Change change) { changes_.push_back(std::move(change)); }
  int64_t tensors() const { return static_cast<int64_t>(changes_.size()); }
  int64_t pieces() const;
  // Makes `step` fill the table when it is bound, and appends what it reads and writes.
  std::shared_ptr<const Bound> Bind(Step& step) &&;

 private:
  static absl::Status Fill(const std::vector<Change>& changes, const RunContext& run, Bound& bound);

  std::vector<Change> changes_;
};

// A number on the device that says whether a launch changes anything; one that is not there says yes.
struct ApplyFlag {
  // That of a float64 [] value, which `step` reads from then on; of kNoValue it is not there.
  static absl::StatusOr<ApplyFlag> Of(Lowering& lowering, ValueId id, Step& step);
  const double* At(const RunContext& run) const {
    return region.buffer < 0 ? nullptr : run.At<const double>(region);
  }
  // The table, for a launch that obeys.
  ChangeTable On(ChangeTable table, const RunContext& run) const {
    table.apply = At(run);
    return table;
  }

  Region region;  // None where its buffer is below 0.
};

// The value that says whether an optimizer's step counts; kNoValue where it does in any case.
ValueId ApplyOf(const Node& update);

// `node`, and the nodes after it that are `alike` and may as well be done together with it: nothing between
// makes, reads or changes what they work on. The others are absorbed.
std::vector<const Node*> TakeTogether(Lowering& lowering, const Node& node,
                                      const std::function<bool(const Node& other)>& alike);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_TENSOR_CHANGES_H_
