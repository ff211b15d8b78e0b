// An LSTM over plain tensors. Sixteen samples pass through all positions side by side, in memory that stays
// in the cache. A thread handles whole blocks of sixteen.

#include "engine/backends/cpu/lstm.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/backends/cpu/products.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/lstm.h"

namespace tandem::cpu {
namespace {

// The sizes of sequences [N, L, H].
struct LstmSizes {
  int64_t samples = 0;
  int64_t length = 0;
  int64_t units = 0;
  bool reverse = false;

  LstmSizes(const Shape& sequence, bool reverse)
      : samples(sequence[0]), length(sequence[1]), units(sequence[2]), reverse(reverse) {}

  int64_t blocks() const { return (samples + kBlock - 1) / kBlock; }
  int64_t rows(int64_t block) const { return std::min(kBlock, samples - block * kBlock); }
  // Returns the elements of a state of a block.
  int64_t state() const { return units * kBlock; }
  // Returns the position of step `step`, from 0.
  int64_t position(int64_t step) const { return reverse ? length - 1 - step : step; }
  // Returns the first element of the block at `position`, in a sequence with `columns` numbers for each
  // position. The next function returns the distance of its rows.
  int64_t at(int64_t block, int64_t position, int64_t columns) const {
    return (block * kBlock * length + position) * columns;
  }
  int64_t stride(int64_t columns) const { return length * columns; }
  // Returns the product of the weight [4 units, units] and a block's states.
  LinearSizes product() const { return {.blocks = 1, .inputs = units, .outputs = 4 * units}; }
};

// Hands out a block's working memory, piece by piece.
class Pieces {
 public:
  Pieces(float* memory, int64_t state) : next_(memory), state_(state) {}
  float* Take(int64_t states) { return std::exchange(next_, next_ + states * state_); }

 private:
  float* next_;
  int64_t state_;
};

// The product of a weight with a block's states, which are sixteen columns. By tiles, the weight is packed
// once for all blocks and positions.
class StateProduct {
 public:
  // Without `transposed` the product is weight [4 H, H] by h, else its transpose by gradients [4 H].
  StateProduct(Lowering& lowering, const Node& node, const LstmSizes& sizes, bool transposed)
      : sizes_(sizes.product()), transposed_(transposed) {
    if (!TakesTileProducts(lowering, node)) return;
    tiles_ = BestTileKernels();
    const int64_t lines = transposed ? sizes_.inputs : sizes_.outputs;
    weight_form_ =
        transposed ? TransposedA(sizes_.outputs, sizes_.inputs) : RowsOfA(sizes_.outputs, sizes_.inputs);
    state_form_ = {.lines = kBlock,
                   .depth = weight_form_.depth,
                   .depth_vectors = false,
                   .stride = kBlock,
                   .columns = true};
    result_form_ = {.rows = lines,
                    .columns = kBlock,
                    .steps = (weight_form_.depth + kTileChannels - 1) / kTileChannels,
                    .stride = kBlock};
    packed_weight_ = lowering.Scratch(weight_form_.blocks() * block_elements() * SizeOf(DType::kBFloat16));
    packed_states_ = lowering.Scratch(sizes.blocks() * block_elements() * SizeOf(DType::kBFloat16));
  }

  void AddScratch(std::vector<Region>* writes) const {
    if (tiles_ != nullptr) writes->insert(writes->end(), {packed_weight_, packed_states_});
  }

  void PackWeight(const RunContext& run, const float* weight) const {
    if (tiles_ == nullptr) return;
    run.team->For(weight_form_.blocks(), [&](int64_t begin, int64_t end) {
      tiles_->pack_factor(weight_form_, weight, 0, result_form_.steps,
                          run.At<uint16_t>(packed_weight_) + begin * block_elements(), begin, end);
    });
  }

  // Computes the product for `block`. `bias` may be null.
  void Compute(const RunContext& run, int64_t block, const float* weight, const float* states,
               const float* bias, float* result) const {
    if (tiles_ != nullptr) {
      uint16_t* packed = run.At<uint16_t>(packed_states_) + block * block_elements();
      tiles_->pack_factor(state_form_, states, 0, result_form_.steps, packed, 0, 1);
      TileProduct form = result_form_;
      form.row_bias = bias;
      tiles_->multiply(form, run.At<const uint16_t>(packed_weight_), packed, result, 0, weight_form_.blocks(),
                       0, 1);
    } else if (transposed_) {
      run.kernels->linear_grad_input(sizes_, states, weight, result, 0, sizes_.inputs);
    } else {
      run.kernels->linear_forward(sizes_, states, weight, bias, false, result, 0, sizes_.outputs);
    }
  }

  const char* name(const char* plain, const char* tiled) const { return tiles_ == nullptr ? plain : tiled; }

 private:
  int64_t block_elements() const { return result_form_.steps * kPackedStep; }

  LinearSizes sizes_;
  bool transposed_;
  const TileKernels* tiles_ = nullptr;  // Null without tiles.
  TileFactor weight_form_;
  TileFactor state_form_;
  TileProduct result_form_;
  Region packed_weight_;
  Region packed_states_;
};

// The states that a block of a step needs.
constexpr int64_t kForwardStates = 12;
constexpr int64_t kBackwardStates = 13;

Region BlockScratch(Lowering& lowering, const LstmSizes& sizes, int64_t states) {
  return lowering.Scratch(sizes.blocks() * sizes.state() * states * SizeOf(DType::kFloat32));
}

void RunForward(const RunContext& run, const LstmSizes& s, const std::vector<Region>& given,
                const std::vector<Region>& made, const StateProduct& product, Region scratch, int64_t block) {
  const Kernels& kernels = *run.kernels;
  const int64_t rows = s.rows(block);
  const int64_t gates_width = 4 * s.units;
  const int64_t first = block * kBlock * s.units;
  Pieces pieces(run.At<float>(scratch) + block * kForwardStates * s.state(), s.state());
  float* projected = pieces.Take(4);
  float* gates = pieces.Take(4);
  float* h = pieces.Take(1);
  float* next_h = pieces.Take(1);
  float* c = pieces.Take(1);
  float* next_c = pieces.Take(1);
  kernels.gather_lanes(rows, s.units, s.units, run.At<const float>(given[1]) + first, h);
  kernels.gather_lanes(rows, s.units, s.units, run.At<const float>(given[2]) + first, c);
  for (int64_t step = 0; step < s.length; ++step) {
    const int64_t l = s.position(step);
    const int64_t gate = s.at(block, l, gates_width);
    const int64_t cell = s.at(block, l, s.units);
    kernels.gather_lanes(rows, gates_width, s.stride(gates_width), run.At<const float>(given[0]) + gate,
                         projected);
    product.Compute(run, block, run.At<const float>(given[3]), h, run.At<const float>(given[4]), gates);
    kernels.lstm_step(s.units, projected, c, gates, next_c, next_h);
    kernels.scatter_lanes(rows, gates_width, s.stride(gates_width), gates, run.At<float>(made[3]) + gate);
    kernels.scatter_lanes(rows, s.units, s.stride(s.units), next_c, run.At<float>(made[4]) + cell);
    kernels.scatter_lanes(rows, s.units, s.stride(s.units), next_h, run.At<float>(made[0]) + cell);
    std::swap(h, next_h);
    std::swap(c, next_c);
  }
  kernels.scatter_lanes(rows, s.units, s.units, h, run.At<float>(made[1]) + first);
  kernels.scatter_lanes(rows, s.units, s.units, c, run.At<float>(made[2]) + first);
}

// `given` are weight, h0, c0, y, gates, cells, grad_y, grad_h_n and grad_c_n.
void RunBackward(const RunContext& run, const LstmSizes& s, const std::vector<Region>& given,
                 const std::vector<Region>& made, const StateProduct& product, Region scratch,
                 int64_t block) {
  const Kernels& kernels = *run.kernels;
  const int64_t rows = s.rows(block);
  const int64_t gates_width = 4 * s.units;
  const int64_t first = block * kBlock * s.units;
  Pieces pieces(run.At<float>(scratch) + block * kBackwardStates * s.state(), s.state());
  float* gates = pieces.Take(4);
  float* grads = pieces.Take(4);
  float* c = pieces.Take(1);
  float* c_before = pieces.Take(1);
  float* grad_y = pieces.Take(1);
  float* grad_h = pieces.Take(1);
  float* grad_c = pieces.Take(1);
  const float* cells = run.At<const float>(given[5]);
  kernels.gather_lanes(rows, s.units, s.units, run.At<const float>(given[7]) + first, grad_h);
  kernels.gather_lanes(rows, s.units, s.units, run.At<const float>(given[8]) + first, grad_c);
  kernels.gather_lanes(rows, s.units, s.stride(s.units),
                       cells + s.at(block, s.position(s.length - 1), s.units), c);
  for (int64_t step = s.length - 1; step >= 0; --step) {
    const int64_t l = s.position(step);
    const int64_t gate = s.at(block, l, gates_width);
    const int64_t cell = s.at(block, l, s.units);
    // The states before the step: those of the previous step, or the first.
    const bool begins = step == 0;
    const int64_t before = begins ? first : s.at(block, s.position(step - 1), s.units);
    const int64_t stride = begins ? s.units : s.stride(s.units);
    kernels.gather_lanes(rows, s.units, stride, (begins ? run.At<const float>(given[2]) : cells) + before,
                         c_before);
    kernels.gather_lanes(rows, gates_width, s.stride(gates_width), run.At<const float>(given[4]) + gate,
                         gates);
    kernels.gather_lanes(rows, s.units, s.stride(s.units), run.At<const float>(given[6]) + cell, grad_y);
    kernels.lstm_step_grad(s.units, gates, c_before, c, grad_y, grad_h, grad_c, grads);
    kernels.scatter_lanes(rows, gates_width, s.stride(gates_width), grads, run.At<float>(made[0]) + gate);
    product.Compute(run, block, run.At<const float>(given[0]), grads, nullptr, grad_h);
    const float* h = run.At<const float>(given[begins ? 1 : 3]) + before;
    for (int64_t row = 0; row < rows; ++row) {
      std::memcpy(run.At<float>(made[3]) + cell + row * s.stride(s.units), h + row * stride,
                  s.units * sizeof(float));
    }
    std::swap(c, c_before);
  }
  kernels.scatter_lanes(rows, s.units, s.units, grad_h, run.At<float>(made[1]) + first);
  kernels.scatter_lanes(rows, s.units, s.units, grad_c, run.At<float>(made[2]) + first);
}

}  // namespace

absl::Status LowerLstm(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const LstmSizes sizes(lowering.shape(node.outputs[0]), static_cast<const LstmOp&>(*node.op).reverse);
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> given, lowering.GetAllPlain(node));
  const std::vector<Region> made = lowering.DefineAllPlain(node);
  const Region scratch = BlockScratch(lowering, sizes, kForwardStates);
  const StateProduct product(lowering, node, sizes, false);
  std::vector<Region> writes = made;
  writes.push_back(scratch);
  product.AddScratch(&writes);
  lowering.Emit({.name = product.name("lstm", "lstm tiles"),
                 .reads = given,
                 .writes = std::move(writes),
                 .in_place = {{3, 0}},
                 .run = [=](const RunContext& run) {
                   product.PackWeight(run, run.At<const float>(given[3]));
                   run.team->For(sizes.blocks(), [&](int64_t begin, int64_t end) {
                     for (int64_t block = begin; block < end; ++block) {
                       RunForward(run, sizes, given, made, product, scratch, block);
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerLstmGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const LstmSizes sizes(lowering.shape(node.inputs[3]), static_cast<const LstmGradOp&>(*node.op).reverse);
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> given, lowering.GetAllPlain(node));
  const std::vector<Region> made = lowering.DefineAllPlain(node);
  const Region scratch = BlockScratch(lowering, sizes, kBackwardStates);
  const StateProduct product(lowering, node, sizes, true);
  std::vector<Region> writes = made;
  writes.push_back(scratch);
  product.AddScratch(&writes);
  lowering.Emit({.name = product.name("lstm_grad", "lstm_grad tiles"),
                 .reads = given,
                 .writes = std::move(writes),
                 .in_place = {{0, 4}, {3, 5}},
                 .run = [=](const RunContext& run) {
                   product.PackWeight(run, run.At<const float>(given[0]));
                   run.team->For(sizes.blocks(), [&](int64_t begin, int64_t end) {
                     for (int64_t block = begin; block < end; ++block) {
                       RunBackward(run, sizes, given, made, product, scratch, block);
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace tandem::cpu
