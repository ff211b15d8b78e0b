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
  std::byte* const* buffers = nullptr;  // By buffer; those of inputs change from run to run.
  const Team* team = nullptr;
  const Kernels* kernels = nullptr;
  Communicator* communicator = nullptr;
  BegunReductions* reductions = nullptr;  // Those of this run.

  template <typename T>
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
  std::function<absl::Status(const RunContext&)> run = {};
  // Of a step that sums float32 elements, so many, over the replicas and does nothing else: where they begin,
  // at the begin of a buffer. It has no `run` before SettleReductions.
  Region reduced = {};
  int64_t reduced_elements = 0;
  // Called once, when all buffers but those of inputs have their memory.
  std::function<absl::Status(const RunContext&)> bind = {};
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
};

// From fast to frugal.
enum class Algorithms : uint8_t {
  kFastest,
  kSmallScratch,     // No algorithm of oneDNN's with more scratch than kSmallScratchBytes.
  kWithoutWinograd,  // Whose scratch grows with channels and threads.
  kOneDnn,           // No batch-blocked layout, which pads batches.
};

inline constexpr int64_t kSmallScratchBytes = int64_t{32} << 20;

// A graph on its way to an executable: nodes are taken in order, and each adds steps and says where its
// outputs lie. A value is made in one layout and converted, once, where a reader needs another.
class Lowering {
 public:
  // `compute` is float32, or bfloat16 where what is large may be computed and kept in that.
  Lowering(const Graph& graph, CpuVariables* variables, const Team& team, Algorithms algorithms,
           DType compute);

  Algorithms algorithms() const { return algorithms_; }
  DType compute() const { return compute_; }
  const Graph& graph() const { return graph_; }
  const Team& team() const { return team_; }
  const Value& value(ValueId id) const { return graph_.value(id); }
  const Shape& shape(ValueId id) const { return graph_.value(id).shape; }

  // Where the value is, in its own type: one that was made in bfloat16 is converted. The layout of a variable
  // that is free still becomes plain.
  absl::StatusOr<Place> Home(ValueId id);
  // Where the value was made, a float32 one perhaps in bfloat16.
  absl::StatusOr<Place> HomeAsMade(ValueId id);
  // Settles the layout of a variable that is free still; of any other value it does nothing.
  absl::Status SettleVariable(ValueId id, const Layout& layout);
  // Where the value is in `layout`; converts it if need be. The layout of a variable that is free still
  // becomes this one.
  absl::StatusOr<Region> Get(ValueId id, const Layout& layout);
  // The same, plain or batch-blocked.
  absl::StatusOr<Region> GetPlain(ValueId id);
  absl::StatusOr<Region> GetBatchBlocked(ValueId id);
  // As Get, but never the memory of an input, whose address changes from run to run.
  absl::StatusOr<Region> GetFixed(ValueId id, const Layout& layout);

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
  // What a node computed from a weight and a later one may use again, until the weight changes; null where
  // there is nothing.
  const Region* FindTransformed(ValueId weight) const;
  void SetTransformed(ValueId weight, Region region) { transformed_[weight] = region; }
  // The sums that a node before `node` took for it; null where none did.
  const Region* FindSums(NodeId node) const;
  void SetSums(NodeId node, Region region) { sums_[node] = region; }
  // The value changes in place: conversions of it are out of date.
  void Changed(ValueId id);
  void Emit(Step step);

  // Nodes that read the value, in order.
  const std::vector<NodeId>& readers(ValueId id) const { return readers_[id]; }
  // Whether the value has been made: it is no result of a node, or that node's steps are there.
  bool IsMade(ValueId id) const { return value(id).producer == kNoNode || !places_[id].empty(); }
  // The node that makes the value, of this kind; null if it is another.
  const Node* MakerOf(ValueId id, absl::string_view kind) const;
  // Whether a node after `node` changes the value, a variable, in place.
  bool ChangesAfter(ValueId id, NodeId node) const;
  // The one node that reads the value, of this kind; null if there are others, or if the host reads it.
  const Node* OnlyReader(ValueId id, absl::string_view kind) const;
  // The parameter that an optimizer changes by this gradient, reduced and clipped or not; kNoValue where
  // there is none.
  ValueId ParameterOf(ValueId grad) const;
  // Says that another node's steps do what this one asks for too.
  void Absorb(NodeId id) { absorbed_[id] = true; }
  bool absorbed(NodeId id) const { return absorbed_[id]; }

  // What came of it.
  std::vector<Step>& steps() { return steps_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  // Settles the variables that are free still, and makes what the host will read have a place.
  absl::Status Finish();
  absl::StatusOr<Place> Output(int i);

 private:
  int AddBuffer(Buffer buffer);
  absl::StatusOr<Region> Convert(ValueId id, const Place& from, const Layout& to);

  const Graph& graph_;
  CpuVariables* const variables_;
  const Team team_;
  const Algorithms algorithms_;
  const DType compute_;
  std::vector<std::vector<NodeId>> readers_;           // By value.
  std::vector<bool> is_output_;                        // By value.
  std::vector<bool> absorbed_;                         // By node.
  std::vector<std::vector<Place>> places_;             // By value; the first is its home.
  std::map<ValueId, Region> transformed_;              // By weight.
  std::map<NodeId, Region> sums_;                      // By node.
  std::map<NodeId, std::vector<Place>> bucket_slots_;  // By all_reduce node: by input.
  std::vector<Buffer> buffers_;
  std::vector<Step> steps_;
};

// Adds the steps of one node.
using Lower = absl::Status (*)(Lowering& lowering, const Node& node);
// Null where the backend does not offer the op.
Lower FindLower(absl::string_view kind);

// UNIMPLEMENTED where a value of the node that should be float32 is not.
absl::Status CheckFloat32(const Lowering& lowering, const Node& node, ValueId id);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_LOWERING_H_
