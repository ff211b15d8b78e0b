#include "engine/backends/cuda/kernels/muon.h"

#include "engine/backends/cuda/kernels/change_kernel.h"
#include "engine/backends/cuda/kernels/sum_rows.h"

namespace tandem::cuda {
namespace {

// Computes u, and returns the sum of its squares.
template <typename G>
struct MomentumRows {
  static constexpr int kSums = 1;
  MuonStart start;
  float keep;
  float fresh;

  template <int kLanes>
  __device__ __forceinline__ Sums<1> operator()(int64_t n, Lanes<kLanes>, bool counts) const {
    if (!counts) return {{0}};
    const float g = ToFloat(static_cast<const G*>(start.grad)[n]);
    const float m = keep * start.momentum_buffer[n] + fresh * g;
    const float u = start.nesterov ? fresh * g + keep * m : m;
    if (Applies(start.apply)) start.momentum_buffer[n] = m;
    start.x[n] = u;
    return {{static_cast<double>(u) * u}};
  }
};

struct FinishNorm {
  double epsilon;
  float* factor;
  __device__ __forceinline__ void operator()(const Sums<1>& sums) const {
    const double norm = sqrt(sums.of[0]);
    *factor = static_cast<float>(1 / (norm < epsilon ? epsilon : norm));
  }
};

}  // namespace

void StartMuon(const MuonStart& start, float* factor, void* sums, Stream stream) {
  const auto keep = static_cast<float>(start.momentum);
  const auto fresh = static_cast<float>(1 - start.momentum);
  const FinishNorm finish = {start.epsilon, factor};
  WithNumber(start.grad_type, [&](auto number) {
    SumEach(start.elements, MomentumRows<decltype(number)>{start, keep, fresh}, sums, finish, stream);
  });
  float* x = start.x;
  ForEach(start.elements, stream, [=] __device__(int64_t i) { x[i] *= *factor; });
}

void FinishMuon(int64_t elements, const float* x, const double* rate, double weight_decay, double scale,
                const double* apply, float* parameter, Stream stream) {
  ForEach(elements, stream, [=] __device__(int64_t i) {
    if (!Applies(apply)) return;
    const auto keep = static_cast<float>(1 - *rate * weight_decay);
    const auto step = static_cast<float>(*rate * scale);
    parameter[i] = keep * parameter[i] - step * x[i];
  });
}

}  // namespace tandem::cuda
