#include "engine/backends/cuda/kernels/lstm.h"

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

__device__ __forceinline__ float Sigmoid(float x) { return 1 / (1 + expf(-x)); }

template <typename T>
void Run(const LstmStep& s, Stream stream) {
  const int64_t units = s.sizes.units;
  const int64_t length = s.sizes.length;
  const T* projected = static_cast<const T*>(s.projected);
  T* gates = static_cast<T*>(s.gates);
  T* y = static_cast<T*>(s.y);
  T* h = static_cast<T*>(s.h);
  ForEach(s.sizes.samples * units, stream, [=] __device__(int64_t at) {
    const int64_t n = at / units;
    const int64_t u = at - n * units;
    const int64_t row = n * length + s.position;
    float sums[4];
#pragma unroll
    for (int gate = 0; gate < 4; ++gate) {
      const int64_t k = gate * units + u;
      sums[gate] = ToFloat(projected[row * 4 * units + k]) + s.product[n * 4 * units + k] + s.bias[k];
    }
    const float i = Sigmoid(sums[0]);
    const float f = Sigmoid(sums[1]);
    const float g = tanhf(sums[2]);
    const float o = Sigmoid(sums[3]);
    const float cell = f * s.c_before[at] + i * g;
    const T output = To<T>(o * tanhf(cell));
    T* gate = gates + row * 4 * units + u;
    gate[0] = To<T>(i);
    gate[units] = To<T>(f);
    gate[2 * units] = To<T>(g);
    gate[3 * units] = To<T>(o);
    s.cells[row * units + u] = cell;
    s.c[at] = cell;
    y[row * units + u] = output;
    h[at] = output;
  });
}

template <typename T>
void RunGrad(const LstmStepGrad& s, Stream stream) {
  const int64_t units = s.sizes.units;
  const int64_t length = s.sizes.length;
  const T* gates = static_cast<const T*>(s.gates);
  const T* grad_y = static_cast<const T*>(s.grad_y);
  T* grad_projected = static_cast<T*>(s.grad_projected);
  T* grads = static_cast<T*>(s.grads);
  ForEach(s.sizes.samples * units, stream, [=] __device__(int64_t at) {
    const int64_t n = at / units;
    const int64_t u = at - n * units;
    const int64_t row = n * length + s.position;
    const T* gate = gates + row * 4 * units + u;
    const float i = ToFloat(gate[0]);
    const float f = ToFloat(gate[units]);
    const float g = ToFloat(gate[2 * units]);
    const float o = ToFloat(gate[3 * units]);
    const float squashed = tanhf(s.cells[row * units + u]);
    const float dh = s.grad_h[at] + ToFloat(grad_y[row * units + u]);
    const float dc = s.grad_c[at] + dh * o * (1 - squashed * squashed);
    const float sums[4] = {dc * g * i * (1 - i), dc * s.c_before[n * s.c_before_row + u] * f * (1 - f),
                           dc * i * (1 - g * g), dh * squashed * o * (1 - o)};
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const T grad = To<T>(sums[part]);
      grad_projected[row * 4 * units + part * units + u] = grad;
      grads[n * 4 * units + part * units + u] = grad;
    }
    s.grad_c_before[at] = dc * f;
  });
}

}  // namespace

void RunLstmStep(const LstmStep& step, DType type, Stream stream) {
  WithNumber(type, [&](auto number) { Run<decltype(number)>(step, stream); });
}

void RunLstmStepGrad(const LstmStepGrad& step, DType type, Stream stream) {
  WithNumber(type, [&](auto number) { RunGrad<decltype(number)>(step, stream); });
}

}  // namespace tandem::cuda
