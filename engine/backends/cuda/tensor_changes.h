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

// The source numbers of a tensor's change, as they were computed.
struct ChangeSource {
  Region region;
  DType type = DType::kFloat32;
};
// Returns the source of a float32 value for a tensor in `layout`. It keeps the compute type if the layouts
// agree.
absl::StatusOr<ChangeSource> ChangeSourceOf(Lowering& lowering, ValueId id, const Layout& layout);

// The tensors that a launch will change. Used as a value while nodes are lowered.
class TensorChanges {
 public:
  struct Change {
    Region target;
    ChangeSource source = {};
    std::vector<Region> states = {};
    int64_t elements = 0;
    // Whether the target depends on the source alone, and so may reuse its memory.
    bool is_new = false;
    bool may_replace = false;
  };
  // The data of a step's launches, after the step is bound.
  struct Bound {
    std::unique_ptr<DeviceTable<TensorChange>> tensors;
    std::unique_ptr<DeviceTable<ChangePiece>> pieces;
    ChangeTable table;
  };

  void Add(Change change) { changes_.push_back(std::move(change)); }
  int64_t tensors() const { return static_cast<int64_t>(changes_.size()); }
  int64_t pieces() const;
  // Makes the bind of `step` fill the table, and adds the table's reads and writes to it.
  std::shared_ptr<const Bound> Bind(Step& step) &&;

 private:
  static absl::Status Fill(const std::vector<Change>& changes, const RunContext& run, Bound& bound);

  std::vector<Change> changes_;
};

// A device number that says whether a launch changes anything. If missing, it does.
struct ApplyFlag {
  // Returns the flag of a float64 [] value, and adds it to the reads of `step`. kNoValue gives a missing
  // flag.
  static absl::StatusOr<ApplyFlag> Of(Lowering& lowering, ValueId id, Step& step);
  const double* At(const RunContext& run) const {
    return region.buffer < 0 ? nullptr : run.At<const double>(region);
  }
  // Returns the table for a launch that obeys the flag.
  ChangeTable On(ChangeTable table, const RunContext& run) const {
    table.apply = At(run);
    return table;
  }

  Region region;  // None if its buffer is below 0.
};

// Returns the value that says whether an optimizer's step counts, or kNoValue if it always counts.
ValueId ApplyOf(const Node& update);

// Returns `node` and all later `alike` nodes that can run together with it: no node between produces, reads
// or changes their data. Absorbs the other nodes.
std::vector<const Node*> TakeTogether(Lowering& lowering, const Node& node,
                                      const std::function<bool(const Node& other)>& alike);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_TENSOR_CHANGES_H_
