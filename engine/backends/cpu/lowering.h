#ifndef TANDEM_ENGINE_BACKENDS_CPU_LOWERING_H_
#define TANDEM_ENGINE_BACKENDS_CPU_LOWERING_H_

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
#include "engine/backends/cpu/cpu_variables.h"
#include "engine/backends/cpu/kernels/kernels.h"
#include "engine/backends/cpu/layout.h"
#include "engine/backends/cpu/team.h"
#include "engine/graph/graph.h"

namespace tandem::cpu {

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
  std::byte* const* buffers = nullptr;  // By buffer. Those of inputs change from run to run.
  const Team* team = nullptr;
  const Kernels* kernels = nullptr;
  Communicator* communicator = nullptr;
  BegunReductions* reductions = nullptr;  // Of this run.

  template <typename T>
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
  std::function<absl::Status(const RunContext&)> run = {};
  // For a step that only sums `reduced_elements` float32 elements over the replicas: their place, at the
  // beginning of a buffer. The step has no `run` before SettleReductions.
  Region reduced = {};
  int64_t reduced_elements = 0;
  // Called a single time, after all buffers except inputs have their memory.
  std::function<absl::Status(const RunContext&)> bind = {};
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
};

// From the fastest to the least memory.
enum class Algorithms : uint8_t {
  kFastest,
  kSmallScratch,     // No oneDNN algorithm with more scratch than kSmallScratchBytes.
  kWithoutWinograd,  // Winograd's scratch grows with channels and threads.
  kOneDnn,           // No batch-blocked layout, which pads batches, and no tiled layout, which pads channels.
};

// The code for matrix products in bfloat16: see TakesTileProducts.
enum class Products : uint8_t { kFaster, kTiles, kOthers };

inline constexpr int64_t kSmallScratchBytes = int64_t{32} << 20;

// Turns a graph into an executable. It takes nodes in order. Each node adds steps and defines the places of
// its outputs. A value is computed in a single layout, and converted once for readers of another layout.
class Lowering {
 public:
  // `compute` is float32, or bfloat16 to compute and keep large values in bfloat16.
  Lowering(const Graph& graph, CpuVariables* variables, const Team& team, Algorithms algorithms,
           DType compute, Products products = Products::kFaster);

  Products products() const { return products_; }
  Algorithms algorithms() const { return algorithms_; }
  DType compute() const { return compute_; }
  const Graph& graph() const { return graph_; }
  const Team& team() const { return team_; }
  const Value& value(ValueId id) const { return graph_.value(id); }
  const Shape& shape(ValueId id) const { return graph_.value(id).shape; }

  // Returns the place of the value in its own type. Converts a value that was computed in bfloat16. Sets a
  // variable's free layout to plain.
  absl::StatusOr<Place> Home(ValueId id);
  // Returns the place in which the value was computed. A float32 value may be in bfloat16.
  absl::StatusOr<Place> HomeAsMade(ValueId id);
  // Sets a variable's layout if it is free. Does nothing for other values.
  absl::Status SettleVariable(ValueId id, const Layout& layout);
  // Returns the place of the value in `layout`. Converts the value if necessary. Sets a variable's free
  // layout to `layout`.
  absl::StatusOr<Region> Get(ValueId id, const Layout& layout);
  // As Get, in the plain or the batch-blocked layout.
  absl::StatusOr<Region> GetPlain(ValueId id);
  absl::StatusOr<Region> GetBatchBlocked(ValueId id);
  // As Get, but never the memory of an input, whose address changes from run to run.
  absl::StatusOr<Region> GetFixed(ValueId id, const Layout& layout);

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
  // Returns the result that an earlier node computed from a weight, if later nodes may reuse it. Null if
  // there is none, or if the weight has changed.
  const Region* FindTransformed(ValueId weight) const;
  void SetTransformed(ValueId weight, Region region) { transformed_[weight] = region; }
  // Returns the sums that an earlier node computed for `node`, or null.
  const Region* FindSums(NodeId node) const;
  void SetSums(NodeId node, Region region) { sums_[node] = region; }
  // Records that the value changes in place: its conversions are out of date.
  void Changed(ValueId id);
  void Emit(Step step);

  // Returns the nodes that read the value, in order.
  const std::vector<NodeId>& readers(ValueId id) const { return readers_[id]; }
  bool IsOutput(ValueId id) const { return is_output_[id]; }
  // Returns whether the value exists: it is no node's result, or the node's steps were added.
  bool IsMade(ValueId id) const { return value(id).producer == kNoNode || !places_[id].empty(); }
  // Returns the node that computes the value, if it is of this kind, else null.
  const Node* MakerOf(ValueId id, absl::string_view kind) const;
  // Returns whether a node after `node` changes the value, a variable, in place.
  bool ChangesAfter(ValueId id, NodeId node) const;
  // Returns the only reader of the value, if it is a node of this kind. Null if there are other readers or
  // the host reads it.
  const Node* OnlyReader(ValueId id, absl::string_view kind) const;
  // Returns the parameter that an optimizer changes by this gradient, reduced and clipped or not, or
  // kNoValue.
  ValueId ParameterOf(ValueId grad) const;
  // Records that another node's steps also do the work of this node.
  void Absorb(NodeId id) { absorbed_[id] = true; }
  bool absorbed(NodeId id) const { return absorbed_[id]; }

  // The results.
  std::vector<Step>& steps() { return steps_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  // Sets the layouts of free variables, and gives all outputs for the host a place.
  absl::Status Finish();
  absl::StatusOr<Place> Output(int i);

 private:
  int AddBuffer(Buffer buffer);
  absl::StatusOr<Region> Convert(ValueId id, const Place& from, const Layout& to);
  absl::StatusOr<Region> ConvertTiles(ValueId id, const Place& from, const Layout& to);

  const Graph& graph_;
  CpuVariables* const variables_;
  const Team team_;
  const Algorithms algorithms_;
  const DType compute_;
  const Products products_;
  std::vector<std::vector<NodeId>> readers_;           // By value.
  std::vector<bool> is_output_;                        // By value.
  std::vector<bool> absorbed_;                         // By node.
  std::vector<std::vector<Place>> places_;             // By value. The first place is the home.
  std::map<ValueId, Region> transformed_;              // By weight.
  std::map<NodeId, Region> sums_;                      // By node.
  std::map<NodeId, std::vector<Place>> bucket_slots_;  // By all_reduce node, then by input.
  std::vector<Buffer> buffers_;
  std::vector<Step> steps_;
};

// Adds the steps of a node.
using Lower = absl::Status (*)(Lowering& lowering, const Node& node);
// Returns null if the backend does not offer the op.
Lower FindLower(absl::string_view kind);

// UNIMPLEMENTED if a value of the node must be float32 and is not.
absl::Status CheckFloat32(const Lowering& lowering, const Node& node, ValueId id);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_LOWERING_H_
