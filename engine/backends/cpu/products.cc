#include "engine/backends/cpu/products.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "engine/backends/cpu/convolution.h"
#include "engine/backends/cpu/cpu_executable.h"
#include "engine/backends/cpu/linear.h"
#include "engine/backends/cpu/remembered.h"
#include "engine/base/status_macros.h"

namespace tandem::cpu {
namespace {

// The packed numbers of a factor that all threads read should stay in a core's second cache.
constexpr int64_t kSharedBytes = 1 << 20;
// The most blocks of the other factor that a thread packs for itself at a time, and their most steps in
// depth.
constexpr int64_t kOwnBlocks = 2;
constexpr int64_t kOwnSteps = 64;

// Returns the first number of a matrix of a factor. The matrix begins `elements` after the region's start.
const void* FactorOf(const RunContext& run, Region region, const TileFactor& form, int64_t elements) {
  const int64_t bytes = elements * SizeOf(form.narrow ? DType::kBFloat16 : DType::kFloat32);
  return run.At<const std::byte>(region) + bytes;
}

// A product that is cut into parts of depth. In each part, the factor with fewer lines is packed whole. The
// threads share the blocks of the other factor.
struct Parts {
  Product product;
  bool shares_a = false;
  int64_t steps = 0;       // In depth.
  int64_t part_steps = 0;  // In a part, at most.

  explicit Parts(const Product& p) : product(p), shares_a(p.a_form.lines < p.b_form.lines) {
    steps = std::max<int64_t>(1, (p.a_form.depth + kTileChannels - 1) / kTileChannels);
    const int64_t step_bytes = shared().blocks() * kPackedStep * SizeOf(DType::kBFloat16);
    part_steps =
        std::clamp<int64_t>(kSharedBytes / std::max<int64_t>(1, step_bytes), 1, std::min(steps, kOwnSteps));
  }

  const TileFactor& shared() const { return shares_a ? product.a_form : product.b_form; }
  const TileFactor& own() const { return shares_a ? product.b_form : product.a_form; }
  // Return floats of memory.
  int64_t shared_floats() const { return shared().blocks() * part_steps * kPackedStep / 2; }
  int64_t own_floats() const { return kOwnBlocks * part_steps * kPackedStep / 2; }

  // Computes a matrix with the threads of `team`, which have `own_scratch`.
  void Run(const RunContext& run, const TileKernels& tiles, const Team& team, int64_t matrix,
           float* shared_scratch, float* own_scratch) const {
    const void* a = FactorOf(run, product.a, product.a_form, matrix * product.a_matrix);
    const void* b = FactorOf(run, product.b, product.b_form, matrix * product.b_matrix);
    float* c = run.At<float>(product.c) + matrix * product.c_matrix;
    auto* packed = reinterpret_cast<uint16_t*>(shared_scratch);
    TileProduct form = product.c_form;
    if (product.has_row_bias) form.row_bias = run.At<const float>(product.bias);
    if (product.has_column_bias) form.column_bias = run.At<const float>(product.bias);
    const int64_t shared_blocks = shared().blocks();
    const int64_t groups = (own().blocks() + kOwnBlocks - 1) / kOwnBlocks;
    const int64_t shares = std::min<int64_t>(team.threads(), groups);
    for (int64_t step = 0; step < steps; step += part_steps) {
      form.steps = std::min(part_steps, steps - step);
      form.adds = step > 0;
      form.relu = product.c_form.relu && step + form.steps == steps;
      const int64_t depth = step * kTileChannels;
      team.For(shared_blocks, [&](int64_t begin, int64_t end) {
        tiles.pack_factor(shared(), shares_a ? a : b, depth, form.steps,
                          packed + begin * form.steps * kPackedStep, begin, end);
      });
      team.For(shares, [&](int64_t first, int64_t last) {
        for (int64_t share = first; share < last; ++share) {
          auto* mine = reinterpret_cast<uint16_t*>(own_scratch + share * own_floats());
          for (int64_t group = groups * share / shares; group < groups * (share + 1) / shares; ++group) {
            const int64_t begin = group * kOwnBlocks;
            const int64_t end = std::min(begin + kOwnBlocks, own().blocks());
            tiles.pack_factor(own(), shares_a ? b : a, depth, form.steps, mine, begin, end);
            if (shares_a) {
              tiles.multiply(form, packed, mine, c, 0, shared_blocks, begin, end);
            } else {
              tiles.multiply(form, mine, packed, c, begin, end, 0, shared_blocks);
            }
          }
        }
      });
    }
  }
};

// An executable of a single node, over variables that are zero.
class Trial {
 public:
  static absl::StatusOr<std::unique_ptr<Trial>> Make(const Lowering& like, const Node& node,
                                                     Products products) {
    auto trial = std::make_unique<Trial>();
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value& value = like.value(node.inputs[i]);
      inputs.push_back(trial->graph_.AddVariable(absl::StrCat("input", i), VariableKind::kStatistic,
                                                 value.dtype, value.shape));
    }
    TANDEM_RETURN_IF_ERROR(trial->variables_.Declare(trial->graph_));
    TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, trial->graph_.AddNode(node.op, inputs));
    for (const ValueId output : outputs) trial->graph_.MarkOutput(output);
    Lowering lowering(trial->graph_, &trial->variables_, like.team(), like.algorithms(), like.compute(),
                      products);
    TANDEM_RETURN_IF_ERROR(lowering.LowerGraph());
    TANDEM_ASSIGN_OR_RETURN(trial->executable_, CpuExecutable::Plan(lowering));
    TANDEM_RETURN_IF_ERROR(trial->executable_->Allocate(0, trial->variables_.workspace_bytes()));
    return trial;
  }

  absl::Status Run() {
    const auto start = std::chrono::steady_clock::now();
    TANDEM_RETURN_IF_ERROR(executable_->Run({}, nullptr));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best_seconds_ = std::min(best_seconds_, seconds);
    return absl::OkStatus();
  }
  double best_seconds() const { return best_seconds_; }

 private:
  Graph graph_;
  CpuVariables variables_{nullptr};
  std::unique_ptr<CpuExecutable> executable_;
  double best_seconds_ = std::numeric_limits<double>::infinity();
};

absl::StatusOr<std::string> Measure(const Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Trial> tiles, Trial::Make(lowering, node, Products::kTiles));
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Trial> others,
                          Trial::Make(lowering, node, Products::kOthers));
  // In turns, so that other work on the machine slows both.
  for (int i = 0; i < 5; ++i) {
    TANDEM_RETURN_IF_ERROR(tiles->Run());
    TANDEM_RETURN_IF_ERROR(others->Run());
  }
  return tiles->best_seconds() <= others->best_seconds() ? "tiles" : "others";
}

std::string NodeText(const Lowering& lowering, const Node& node) {
  std::string text = absl::StrCat(MachineText(lowering), " tiles-", BestTileKernels()->isa, " ",
                                  node.op->kind(), "(", node.op->attributes(), ")");
  for (const ValueId input : node.inputs) absl::StrAppend(&text, " ", lowering.shape(input).ToString());
  return text;
}

// Returns whether the node reads the value only as a factor in bfloat16.
bool ReadsNarrow(const Lowering& lowering, const Node& node, ValueId id) {
  const absl::string_view kind = node.op->kind();
  // Without tiles, oneDNN multiplies pairs of matrices in float32.
  if (kind == "matmul") return TakesTileProducts(lowering, node);
  if (kind != "linear" && kind != "linear_grad_weight") return false;
  // oneDNN also reads x in bfloat16. Batch-blocked rows are float32.
  return node.inputs[0] == id && std::count(node.inputs.begin(), node.inputs.end(), id) == 1 &&
         !LinearTakesBatchBlocked(lowering, lowering.shape(id));
}

}  // namespace

bool IsKeptNarrow(const Lowering& lowering, ValueId id) {
  const GraphUses& uses = lowering.uses();
  if (lowering.value(id).role != ValueRole::kIntermediate || uses.IsOutput(id)) return false;
  // A reshaped value shares its memory with another value, which may have other readers.
  if (uses.MakerOf(id, "reshape") != nullptr) return false;
  const std::vector<NodeId>& readers = uses.readers(id);
  if (readers.empty() || readers.back() - readers.front() < static_cast<NodeId>(readers.size())) return false;
  return std::all_of(readers.begin(), readers.end(),
                     [&](NodeId reader) { return ReadsNarrow(lowering, lowering.graph().node(reader), id); });
}

absl::StatusOr<Region> GetTileFactor(Lowering& lowering, ValueId id, TileFactor& form) {
  form.narrow = IsKeptNarrow(lowering, id);
  const DType dtype = form.narrow ? DType::kBFloat16 : DType::kFloat32;
  return lowering.Get(id, Layout::Plain(dtype, lowering.shape(id)));
}

void EmitProduct(Lowering& lowering, const Product& product) {
  const Parts parts(product);
  const bool whole = product.matrices == 1;
  // With several matrices, each thread computes whole matrices by itself.
  const int64_t threads = lowering.team().threads();
  const int64_t floats = parts.shared_floats() + parts.own_floats();
  const int64_t all = whole ? parts.shared_floats() + threads * parts.own_floats() : threads * floats;
  const Region scratch = lowering.Scratch(all * static_cast<int64_t>(sizeof(float)));
  std::vector<Region> reads = {product.a, product.b};
  if (product.has_row_bias || product.has_column_bias) reads.push_back(product.bias);
  lowering.Emit({.name = product.name,
                 .reads = std::move(reads),
                 .writes = {product.c, scratch},
                 .run = [=, tiles = BestTileKernels()](const RunContext& run) {
                   float* memory = run.At<float>(scratch);
                   if (whole) {
                     parts.Run(run, *tiles, *run.team, 0, memory, memory + parts.shared_floats());
                     return absl::OkStatus();
                   }
                   ForWithScratch(run, scratch, floats, parts.product.matrices,
                                  [&](float* own, int64_t begin, int64_t end) {
                                    for (int64_t matrix = begin; matrix < end; ++matrix) {
                                      parts.Run(run, *tiles, Team(1), matrix, own,
                                                own + parts.shared_floats());
                                    }
                                  });
                   return absl::OkStatus();
                 }});
}

bool TakesTileProducts(const Lowering& lowering, const Node& node) {
  if (lowering.compute() != DType::kBFloat16 || lowering.algorithms() == Algorithms::kOneDnn) return false;
  if (BestTileKernels() == nullptr || lowering.products() == Products::kOthers) return false;
  for (const ValueId id : node.inputs) {
    if (lowering.shape(id).elements() == 0) return false;
  }
  if (lowering.products() == Products::kTiles) return true;
  const auto measure = [&]() -> absl::optional<std::string> {
    absl::StatusOr<std::string> faster = Measure(lowering, node);
    if (!faster.ok()) return absl::nullopt;
    return *std::move(faster);
  };
  return Remembered().Choose(NodeText(lowering, node), measure).value_or("tiles") == "tiles";
}

TileFactor RowsOfA(int64_t rows, int64_t columns) {
  return {.lines = rows, .depth = columns, .depth_vectors = true, .stride = columns};
}
TileFactor TransposedA(int64_t rows, int64_t columns) {
  return {.lines = columns, .depth = rows, .depth_vectors = false, .stride = columns};
}
TileFactor RowsOfB(int64_t rows, int64_t columns) {
  return {.lines = columns, .depth = rows, .depth_vectors = false, .stride = columns, .columns = true};
}
TileFactor TransposedB(int64_t rows, int64_t columns) {
  return {.lines = rows, .depth = columns, .depth_vectors = true, .stride = columns, .columns = true};
}

}  // namespace tandem::cpu
