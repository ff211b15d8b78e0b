#include "engine/backends/cuda/kernels/ranks.h"

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

template <typename T>
void SumNumbers(const RankBuffers& buffers, int64_t begin, int64_t end, float scale, Stream stream) {
  ForEach(end - begin, stream, [=] __device__(int64_t i) {
    float sum = 0;
    for (int r = 0; r < buffers.count; ++r) sum += ToFloat(static_cast<const T*>(buffers.data[r])[begin + i]);
    for (int r = 0; r < buffers.count; ++r) static_cast<T*>(buffers.data[r])[begin + i] = To<T>(scale * sum);
  });
}

void SumDoubles(const RankBuffers& buffers, int64_t begin, int64_t end, double scale, Stream stream) {
  ForEach(end - begin, stream, [=] __device__(int64_t i) {
    double sum = 0;
    for (int r = 0; r < buffers.count; ++r) sum += static_cast<const double*>(buffers.data[r])[begin + i];
    for (int r = 0; r < buffers.count; ++r) static_cast<double*>(buffers.data[r])[begin + i] = scale * sum;
  });
}

}  // namespace

bool CanSumRanks(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kBFloat16 ||
         dtype == DType::kFloat16;
}

void SumRanks(const RankBuffers& buffers, DType dtype, int64_t begin, int64_t end, double scale,
              Stream stream) {
  if (dtype == DType::kFloat64) {
    SumDoubles(buffers, begin, end, scale, stream);
    return;
  }
  WithNumber(dtype, [&](auto number) {
    SumNumbers<decltype(number)>(buffers, begin, end, static_cast<float>(scale), stream);
  });
}

}  // namespace tandem::cuda
