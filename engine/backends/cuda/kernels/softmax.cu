#include "engine/backends/cuda/kernels/softmax.h"

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"
#include "engine/backends/cuda/kernels/row_threads.h"

namespace tandem::cuda {
namespace {

__device__ __forceinline__ int64_t SeenOf(const SoftmaxKind& kind, int64_t line, int64_t extent) {
  if (kind.queries == 0) return extent;
  const int64_t seen = line % kind.queries + 1;
  return seen < extent ? seen : extent;
}

// Lines with contiguous elements.
template <typename T, bool kWholeBlock>
TANDEM_KERNEL SoftmaxKernel(Grid grid, int64_t lines, int64_t extent, SoftmaxKind kind, const T* all_x,
                            T* all_y) {
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    const RowThreads<kWholeBlock> own(block, lines);
    if (!own.exists) continue;
    const T* const x = all_x + own.row * extent;
    T* const y = all_y + own.row * extent;
    const int64_t seen = SeenOf(kind, own.row, extent);
    float largest = -INFINITY;
    for (int64_t i = own.index; i < seen; i += own.count) {
      largest = Maximum()(kind.scale * ToFloat(x[i]), largest);
    }
    largest = own.Reduce(largest, -INFINITY, Maximum());
    float sum = 0;
    for (int64_t i = own.index; i < seen; i += own.count) sum += expf(kind.scale * ToFloat(x[i]) - largest);
    sum = own.Reduce(sum, 0, Sum());
    const float log_sum = logf(sum);
    const float inverse = 1.0f / sum;
    for (int64_t i = own.index; i < extent; i += own.count) {
      const float shifted = kind.scale * ToFloat(x[i]) - largest;
      y[i] = To<T>(i >= seen ? 0 : kind.log ? shifted - log_sum : expf(shifted) * inverse);
    }
  }
}

template <typename T, bool kWholeBlock>
TANDEM_KERNEL SoftmaxGradKernel(Grid grid, int64_t lines, int64_t extent, SoftmaxKind kind, const T* all_y,
                                const T* all_dy, T* all_dx) {
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    const RowThreads<kWholeBlock> own(block, lines);
    if (!own.exists) continue;
    const T* const y = all_y + own.row * extent;
    const T* const dy = all_dy + own.row * extent;
    T* const dx = all_dx + own.row * extent;
    const int64_t seen = SeenOf(kind, own.row, extent);
    float sum = 0;
    for (int64_t i = own.index; i < seen; i += own.count) {
      sum += kind.log ? ToFloat(dy[i]) : ToFloat(dy[i]) * ToFloat(y[i]);
    }
    sum = own.Reduce(sum, 0, Sum());
    for (int64_t i = own.index; i < extent; i += own.count) {
      const float output = ToFloat(y[i]);
      const float grad = ToFloat(dy[i]);
      const float result = kind.log ? grad - expf(output) * sum : output * (grad - sum);
      dx[i] = To<T>(i < seen ? kind.scale * result : 0);
    }
  }
}

// Alternating lines: a thread for each line, so that neighbouring threads read neighbours.
template <typename T>
void SoftmaxOfStrided(const SoftmaxLines& lines, bool log, const T* x, T* y, Stream stream) {
  const int64_t extent = lines.extent;
  const int64_t stride = lines.stride;
  ForEach(lines.count, stream, [=] __device__(int64_t line) {
    const int64_t first = line / stride * extent * stride + line % stride;
    const int64_t end = first + extent * stride;
    float largest = ToFloat(x[first]);
    for (int64_t i = first; i < end; i += stride) largest = Maximum()(ToFloat(x[i]), largest);
    float sum = 0;
    for (int64_t i = first; i < end; i += stride) sum += expf(ToFloat(x[i]) - largest);
    const float log_sum = logf(sum);
    for (int64_t i = first; i < end; i += stride) {
      const float shifted = ToFloat(x[i]) - largest;
      y[i] = To<T>(log ? shifted - log_sum : expf(shifted) / sum);
    }
  });
}

template <typename T>
void SoftmaxGradOfStrided(const SoftmaxLines& lines, bool log, const T* y, const T* dy, T* dx,
                          Stream stream) {
  const int64_t extent = lines.extent;
  const int64_t stride = lines.stride;
  ForEach(lines.count, stream, [=] __device__(int64_t line) {
    const int64_t first = line / stride * extent * stride + line % stride;
    const int64_t end = first + extent * stride;
    float sum = 0;
    for (int64_t i = first; i < end; i += stride) {
      sum += log ? ToFloat(dy[i]) : ToFloat(dy[i]) * ToFloat(y[i]);
    }
    for (int64_t i = first; i < end; i += stride) {
      const float output = ToFloat(y[i]);
      const float grad = ToFloat(dy[i]);
      dx[i] = To<T>(log ? grad - expf(output) * sum : output * (grad - sum));
    }
  });
}

}  // namespace

void Softmax(const SoftmaxLines& lines, const SoftmaxKind& kind, const void* x, void* y, Stream stream) {
  WithNumber(lines.type, [&](auto number) {
    using T = decltype(number);
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    if (lines.stride > 1) return SoftmaxOfStrided(lines, kind.log, from, to, stream);
    WithRowThreads(lines.count, lines.extent, [&](auto whole_block, Grid grid) {
      Launch(SoftmaxKernel<T, decltype(whole_block)::value>, grid, Threads(kRowThreads), stream, lines.count,
             lines.extent, kind, from, to);
    });
  });
}

void SoftmaxGrad(const SoftmaxLines& lines, const SoftmaxKind& kind, const void* y, const void* dy, void* dx,
                 Stream stream) {
  WithNumber(lines.type, [&](auto number) {
    using T = decltype(number);
    const T* output = static_cast<const T*>(y);
    const T* grad = static_cast<const T*>(dy);
    T* to = static_cast<T*>(dx);
    if (lines.stride > 1) return SoftmaxGradOfStrided(lines, kind.log, output, grad, to, stream);
    WithRowThreads(lines.count, lines.extent, [&](auto whole_block, Grid grid) {
      Launch(SoftmaxGradKernel<T, decltype(whole_block)::value>, grid, Threads(kRowThreads), stream,
             lines.count, lines.extent, kind, output, grad, to);
    });
  });
}

}  // namespace tandem::cuda
