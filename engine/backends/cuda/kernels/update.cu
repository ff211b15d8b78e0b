#include "engine/backends/cuda/kernels/update.h"

#include "engine/backends/cuda/kernels/change_kernel.h"
#include "engine/backends/cuda/kernels/reduce.h"

namespace tandem::cuda {
namespace {

// The common part of rules without states.
struct OneNumberRule {
  static constexpr int kStates = 0;
  static constexpr bool kChangesStates = false;
  using Numbers = float;
  float number;
  __device__ Numbers At(int) const { return number; }
};

struct ScaleRule : OneNumberRule {
  __device__ __forceinline__ static void Change(float scale, float& y, float x, float*) { y = scale * x; }
};
struct AddRule : OneNumberRule {
  __device__ __forceinline__ static void Change(float scale, float& y, float x, float*) { y += scale * x; }
};
struct AverageRule {
  static constexpr int kStates = 0;
  static constexpr bool kChangesStates = false;
  using Numbers = float;
  double decay;
  const int64_t* step;
  __device__ Numbers At(int) const {
    const auto taken = static_cast<double>(*step);
    const double most = (1 + taken) / (10 + taken);
    return static_cast<float>(1 - (decay < most ? decay : most));
  }
  __device__ __forceinline__ static void Change(float fresh, float& y, float x, float*) {
    y += fresh * (x - y);
  }
};
struct ClampRule : OneNumberRule {
  __device__ __forceinline__ static void Change(float limit, float& y, float x, float*) {
    y = x > limit ? limit : (x < -limit ? -limit : x);
  }
};
// Multiplies by a number on the device.
struct FactorRule {
  static constexpr int kStates = 0;
  static constexpr bool kChangesStates = false;
  using Numbers = float;
  const double* factor;
  __device__ Numbers At(int) const { return static_cast<float>(*factor); }
  __device__ __forceinline__ static void Change(float factor, float& y, float x, float*) { y = factor * x; }
};

template <typename X>
__device__ double SumOfSquares(const TensorChange& tensor, PieceRange range) {
  const X* x = static_cast<const X*>(tensor.source);
  double sum = 0;
  for (int64_t i = range.begin + threadIdx.x; i < range.end; i += blockDim.x) {
    const double number = ToFloat(x[i]);
    sum += number * number;
  }
  return sum;
}

TANDEM_KERNEL SquaresKernel(ChangeTable table, double* squares) {
  const TensorChange& tensor = table.tensors[table.pieces[blockIdx.x].tensor];
  const PieceRange range(table, tensor, table.pieces[blockIdx.x]);
  double sum = 0;
  WithSource(tensor, [&](auto number) { sum = SumOfSquares<decltype(number)>(tensor, range); });
  const double whole = ReduceBlock(sum, 0.0, Sum());
  if (threadIdx.x == 0) squares[blockIdx.x] = whole;
}

TANDEM_KERNEL ClipFactorKernel(int pieces, const double* squares, double limit, double epsilon,
                               double* factor) {
  double sum = 0;
  for (int i = threadIdx.x; i < pieces; i += blockDim.x) sum += squares[i];
  sum = ReduceBlock(sum, 0.0, Sum());
  if (threadIdx.x != 0) return;
  const double share = limit / (sqrt(sum) + epsilon);
  *factor = share >= 1 ? 1 : share;  // NaN stays NaN.
}

}  // namespace

void ScaleTensors(const ChangeTable& table, float scale, Stream stream) {
  Change(ScaleRule{{scale}}, table, stream);
}

void AddTensors(const ChangeTable& table, float scale, Stream stream) {
  Change(AddRule{{scale}}, table, stream);
}

void AverageTensors(const ChangeTable& table, double decay, const int64_t* step, Stream stream) {
  Change(AverageRule{decay, step}, table, stream);
}

void ClampTensors(const ChangeTable& table, float limit, Stream stream) {
  Change(ClampRule{{limit}}, table, stream);
}

void ClipTensors(const ChangeTable& table, double limit, double epsilon, void* scratch, Stream stream) {
  auto* factor = static_cast<double*>(scratch);
  double* squares = factor + 1;
  InParts(table.piece_count, MostBlocks(), [&](unsigned first, unsigned count) {
    ChangeTable part = table;
    part.pieces += first;
    Launch(SquaresKernel, {count}, Threads(), stream, part, squares + first);
  });
  Launch(ClipFactorKernel, {1}, Threads(), stream, table.piece_count, squares, limit, epsilon, factor);
  Change(FactorRule{factor}, table, stream);
}

}  // namespace tandem::cuda
