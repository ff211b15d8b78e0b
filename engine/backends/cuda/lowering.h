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

// A piece of memory of an executable: a buffer, and where in it.
struct Region {
  int buffer = -1;
  int64_t offset = 0;
};

// Where a value lies, and how.
struct Place {
  Region region;
  Layout layout;
};

// What a step computes with.
struct RunContext {
  std::byte* const* buffers = nullptr;  // By buffer; the same in all runs, but for inputs.
  Stream stream = nullptr;
  // Of steps on the host. It takes memory of the device as all work that the stream was given before left it.
  Communicator* communicator = nullptr;
  BegunReductions* reductions = nullptr;  // Those of this run.

  template <typename T = void>
  T* At(Region region) const {
    return reinterpret_cast<T*>(buffers[region.buffer] + region.offset);
  }
};

// One thing that an executable does. Steps run in order.
struct Step {
  std::string name = {};  // For profiles: the op's kind, and how it is done.
  // Buffers, whole; a step that writes part of one lists it in both where the rest is to stay.
  std::vector<Region> reads = {};
  std::vector<Region> writes = {};
  // (write, read): that write may take the memory of that read.
  std::vector<std::pair<int, int>> in_place = {};
  // Puts work into the stream, and nothing else: it may be called once and what it put there be repeated.
  std::function<absl::Status(const RunContext&)> run = {};
  // Called once, when all buffers have their memory; may put work into the stream. What `run` captures and
  // bind sets is shared through a pointer.
  std::function<absl::Status(const RunContext&)> bind = {};
  // What bind keeps the addresses of. Of all else `run` asks in every run: a graph's inputs may lie
  // elsewhere.
  std::vector<Region> bound = {};
  // It does something on the host, in every run, and may wait there for the stream.
  bool on_host = false;
  // Of a step that sums float32 elements, so many, over the replicas and does nothing else: where they begin,
  // at the begin of a buffer. It has no `run` before SettleReductions.
  Region reduced = {};
  int64_t reduced_elements = 0;
};

// Where a buffer's memory comes from.
struct Buffer {
  enum class Source : uint8_t { kArena, kInput, kVariable, kConstant };
  Source source = Source::kArena;
  int64_t bytes = 0;
  int input = -1;               // Of kInput: which.
  std::byte* memory = nullptr;  // Of kVariable.
  // Of kConstant.
  double constant = 0;
  DType dtype = DType::kFloat32;
  // Of kArena: what no step writes though one reads the buffer as a whole. Zero before the first run.
  struct Gap {
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  std::vector<Gap> gaps = {};
};

// A graph on its way to an executable: nodes are taken in order, and each adds steps and says where its
// outputs lie. A value is made in one layout and type and converted, once, where a reader needs another.
// Float32 values that pass between layers may be made in the compute type, float32 or a narrow one;
// parameters, their gradients when they reach the update, statistics, losses and meters are in the graph's
// own types.
class Lowering {
 public:
  Lowering(const Graph& graph, CudaVariables* variables, DeviceContext* device);

  DeviceContext& device() const { return *device_; }
  // What values between layers, and products, are computed in.
  DType compute() const { return device_->options.compute; }
  // Bytes that a step's algorithm may use beside its tensors: see engine/backend/workspace.h.
  int64_t workspace_cap() const { return workspace_cap_; }
  // The most bytes of an arena that keeps that promise: the planned tensors, and the workspace.
  int64_t arena_cap() const { return planned_bytes_ + workspace_cap_; }
  const Graph& graph() const { return graph_; }
  const Value& value(ValueId id) const { return graph_.value(id); }
  const Shape& shape(ValueId id) const { return graph_.value(id).shape; }

  // Where the value was made: a float32 one perhaps in the compute type. The layout of a variable that is
  // free still becomes plain.
  absl::StatusOr<Place> Home(ValueId id);
  // Settles the layout of a variable that is free still; of any other value it does nothing. The type is the
  // variable's own whatever `layout` says.
  absl::Status SettleVariable(ValueId id, const Layout& layout);
  // Where the value is in `layout`; converts it if need be. The layout of a variable that is free still
  // becomes this one, in its own type.
  absl::StatusOr<Region> Get(ValueId id, const Layout& layout);
  // The same, plain and in the value's own type.
  absl::StatusOr<Region> GetPlain(ValueId id);
  // The same, plain and in the compute type where the value is float32.
  absl::StatusOr<Region> GetPlainCompute(ValueId id);

  // Says that the value will be in `layout`, in memory of its own (in its bucket, if it is for an
  // all_reduce that wants this layout).
  Region Define(ValueId id, const Layout& layout);
  // Says that the value lies where something else does.
  void Alias(ValueId id, Place place);
  // Where an all_reduce node finds its i-th input. All that it reduces lies together, in the order of its
  // inputs and in the layouts of the parameters, if it is for such: in every replica alike, whatever its
  // batch is.
  absl::StatusOr<Place> BucketSlot(const Node& all_reduce, size_t i);
  // Memory that is a step's own.
  Region Scratch(int64_t bytes);
  // The same, 0 before the first run, and then as the step left it.
  Region KeptZeros(int64_t bytes);
  // The value changes in place: conversions of it are out of date.
  void Changed(ValueId id);
  void Emit(Step step);

  // Nodes that read the value, in order.
  const std::vector<NodeId>& readers(ValueId id) const { return readers_[id]; }
  // Whether the value lies somewhere already; false of one whose maker is left to a later node.
  bool IsMade(ValueId id) const { return value(id).producer == kNoNode || !places_[id].empty(); }
  // The node that makes the value, of this kind; null if it is another.
  const Node* MakerOf(ValueId id, absl::string_view kind) const;
  // Whether it is of what an all_reduce reduces together.
  bool InBucket(Region region) const;
  // Whether a node after `first` and before `last` changes the value, a variable, in place.
  bool ChangesBetween(ValueId id, NodeId first, NodeId last) const;
  // The same of any node after `node`.
  bool ChangesAfter(ValueId id, NodeId node) const {
    return ChangesBetween(id, node, static_cast<NodeId>(graph_.nodes().size()));
  }
  // The one node that reads the value, of this kind; null if there are others, or if the host reads it.
  const Node* OnlyReader(ValueId id, absl::string_view kind) const;
  // The parameter that an optimizer changes by this gradient, reduced, unscaled and clipped or not; kNoValue
  // where there is none.
  ValueId ParameterOf(ValueId grad) const;
  // Says that another node's steps do what this one asks for too.
  void Absorb(NodeId id) { absorbed_[id] = true; }
  bool absorbed(NodeId id) const { return absorbed_[id]; }

  // What came of it.
  std::vector<Step>& steps() { return steps_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  // Settles the variables that are free still, and makes what the host will read have a place, in the
  // value's own type.
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
  std::vector<std::vector<Place>> places_;             // By value; the first is its home.
  std::map<NodeId, std::vector<Place>> bucket_slots_;  // By all_reduce node: by input.
  std::vector<Buffer> buffers_;
  std::vector<Step> steps_;
  std::vector<bool> changed_;             // By value.
  std::shared_ptr<Narrowing> narrowing_;  // Of variables; null before the first.
  size_t narrowing_step_ = 0;             // Which step does it.
};

// Adds the steps of one node.
using Lower = absl::Status (*)(Lowering& lowering, const Node& node);
// Null where the backend does not offer the op.
Lower FindLower(absl::string_view kind);

// UNIMPLEMENTED where a value of the node that should be float32 is not.
absl::Status CheckFloat32(const Lowering& lowering, const Node& node, ValueId id);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_LOWERING_H_
