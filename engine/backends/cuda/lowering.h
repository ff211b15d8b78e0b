#ifndef TANDEM_ENGINE_BACKENDS_CUDA_LOWERING_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_LOWERING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backend/begun_reductions.h"
#include "engine/backend/communicator.h"
#include "engine/backends/cuda/cuda_variables.h"
#include "engine/backends/cuda/device_context.h"
#include "engine/backends/cuda/layout.h"
#include "engine/graph/graph.h"

namespace tandem::cuda {

class Narrowing;

// A place in an executable's memory: a buffer and an offset in bytes.
struct Region {
  int buffer = -1;
  int64_t offset = 0;
};

// The place and the layout of a value.
struct Place {
  Region region;
  Layout layout;
};

// The objects that a step computes with.
struct RunContext {
  std::byte* const* buffers = nullptr;  // By buffer. The same in all runs, except for inputs.
  Stream stream = nullptr;
  // For steps on the host. Its calls see the device's memory after all earlier work of the stream.
  Communicator* communicator = nullptr;
  BegunReductions* reductions = nullptr;  // Of this run.

  template <typename T = void>
  T* At(Region region) const {
    return reinterpret_cast<T*>(buffers[region.buffer] + region.offset);
  }
};

// A step of an executable. Steps run in order.
struct Step {
  std::string name = {};  // For profiles: the op's kind and its implementation.
  // Whole buffers. A step that writes a part of a buffer lists it in both, so that the rest stays.
  std::vector<Region> reads = {};
  std::vector<Region> writes = {};
  // Pairs (write, read) of positions: the write may reuse the memory of the read.
  std::vector<std::pair<int, int>> in_place = {};
  // Puts work into the stream and has no other effect, because it may be called once and its work repeated.
  std::function<absl::Status(const RunContext&)> run = {};
  // Called once, after all buffers have their memory. May put work into the stream. `run` and `bind` share
  // state through a pointer.
  std::function<absl::Status(const RunContext&)> bind = {};
  // The regions whose addresses `bind` keeps. `run` asks for all other addresses in every run, because a
  // graph's inputs may move.
  std::vector<Region> bound = {};
  // The step works on the host in every run, and may wait for the stream there.
  bool on_host = false;
  // For a step that only sums `reduced_elements` float32 elements over the replicas: their place, at the
  // beginning of a buffer. The step has no `run` before SettleReductions.
  Region reduced = {};
  int64_t reduced_elements = 0;
};

// The source of a buffer's memory.
struct Buffer {
  enum class Source : uint8_t { kArena, kInput, kVariable, kConstant };
  Source source = Source::kArena;
  int64_t bytes = 0;
  int input = -1;               // Of kInput: the input's position.
  std::byte* memory = nullptr;  // Of kVariable.
  // Of kConstant.
  double constant = 0;
  DType dtype = DType::kFloat32;
  // Of kArena: a part without a writer in a buffer that a step reads as a whole. Zero before the first run.
  struct Gap {
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  std::vector<Gap> gaps = {};
};

// Turns a graph into an executable. It takes nodes in order. Each node adds steps and defines the places of
// its outputs. A value is computed in a single layout and type, and converted once for readers of another.
// Float32 values between layers may have the compute type, float32 or narrow. Parameters, their gradients at
// the update, statistics, losses and meters have the graph's types.
class Lowering {
 public:
  Lowering(const Graph& graph, CudaVariables* variables, DeviceContext* device);

  DeviceContext& device() const { return *device_; }
  // Returns the type of values between layers and of products.
  DType compute() const { return device_->options.compute; }
  // Returns the bytes that a step's algorithm may use besides its tensors. See engine/backend/workspace.h.
  int64_t workspace_cap() const { return workspace_cap_; }
  // Returns the most bytes of an arena that keeps this limit: the planned tensors and the workspace.
  int64_t arena_cap() const { return planned_bytes_ + workspace_cap_; }
  const Graph& graph() const { return graph_; }
  const Value& value(ValueId id) const { return graph_.value(id); }
  const Shape& shape(ValueId id) const { return graph_.value(id).shape; }

  // Returns the place in which the value was computed. A float32 value may have the compute type. Sets a
  // variable's free layout to plain.
  absl::StatusOr<Place> Home(ValueId id);
  // Sets a variable's layout if it is free. Does nothing for other values. The type is always the variable's
  // own.
  absl::Status SettleVariable(ValueId id, const Layout& layout);
  // Returns the place of the value in `layout`. Converts the value if necessary. Sets a variable's free
  // layout to `layout`, in the variable's type.
  absl::StatusOr<Region> Get(ValueId id, const Layout& layout);
  // As Get, plain and in the value's own type.
  absl::StatusOr<Region> GetPlain(ValueId id);
  // As Get, plain and in the compute type if the value is float32.
  absl::StatusOr<Region> GetPlainCompute(ValueId id);

  // Defines that the value will be in `layout`, in its own memory. A value for an all_reduce that wants this
  // layout is placed in its bucket.
  Region Define(ValueId id, const Layout& layout);
  // Defines that the value shares the place of another value.
  void Alias(ValueId id, Place place);
  // Returns the place of an all_reduce node's i-th input. All its inputs are together, in order. Those for
  // parameters have the parameters' layouts. So all replicas agree, whatever their batches are.
  absl::StatusOr<Place> BucketSlot(const Node& all_reduce, size_t i);
  // Returns memory of a single step.
  Region Scratch(int64_t bytes);
  // As Scratch, zero before the first run. Later runs find the data of the step's earlier runs.
  Region KeptZeros(int64_t bytes);
  // Records that the value changes in place: its conversions are out of date.
  void Changed(ValueId id);
  void Emit(Step step);

  // Returns the nodes that read the value, in order.
  const std::vector<NodeId>& readers(ValueId id) const { return readers_[id]; }
  // Returns whether the value has a place. False if its producer is postponed to a later node.
  bool IsMade(ValueId id) const { return value(id).producer == kNoNode || !places_[id].empty(); }
  // Returns the node that computes the value, if it is of this kind, else null.
  const Node* MakerOf(ValueId id, absl::string_view kind) const;
  // Returns whether the region belongs to an all_reduce's bucket.
  bool InBucket(Region region) const;
  // Returns whether a node after `first` and before `last` changes the value, a variable, in place.
  bool ChangesBetween(ValueId id, NodeId first, NodeId last) const;
  // Returns whether any node after `node` changes it.
  bool ChangesAfter(ValueId id, NodeId node) const {
    return ChangesBetween(id, node, static_cast<NodeId>(graph_.nodes().size()));
  }
  // Returns the only reader of the value, if it is a node of this kind. Null if there are other readers or
  // the host reads it.
  const Node* OnlyReader(ValueId id, absl::string_view kind) const;
  // Returns the parameter that an optimizer changes by this gradient, which may be reduced, unscaled and
  // clipped, or kNoValue.
  ValueId ParameterOf(ValueId grad) const;
  // Records that another node's steps also do the work of this node.
  void Absorb(NodeId id) { absorbed_[id] = true; }
  bool absorbed(NodeId id) const { return absorbed_[id]; }

  // The results.
  std::vector<Step>& steps() { return steps_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  // Sets the layouts of free variables, and gives all outputs for the host a place, in the value's own type.
  absl::Status Finish();
  absl::StatusOr<Place> Output(int i);

 private:
  int AddBuffer(Buffer buffer);
  absl::StatusOr<Region> Convert(const Place& from, const Layout& to);
  Region Narrow(const Place& from, const Layout& to);

  const Graph& graph_;
  CudaVariables* const variables_;
  DeviceContext* const device_;
  const int64_t planned_bytes_;
  const int64_t workspace_cap_;
  std::vector<std::vector<NodeId>> readers_;           // By value.
  std::vector<bool> is_output_;                        // By value.
  std::vector<bool> absorbed_;                         // By node.
  std::vector<std::vector<Place>> places_;             // By value. The first place is the home.
  std::map<NodeId, std::vector<Place>> bucket_slots_;  // By all_reduce node, then by input.
  std::vector<Buffer> buffers_;
  std::vector<Step> steps_;
  std::vector<bool> changed_;             // By value.
  std::shared_ptr<Narrowing> narrowing_;  // Of variables. Null before the first.
  size_t narrowing_step_ = 0;             // The position of its step.
};

// Adds the steps of a node.
using Lower = absl::Status (*)(Lowering& lowering, const Node& node);
// Returns null if the backend does not offer the op.
Lower FindLower(absl::string_view kind);

// UNIMPLEMENTED if a value of the node must be float32 and is not.
absl::Status CheckFloat32(const Lowering& lowering, const Node& node, ValueId id);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_LOWERING_H_
