#include "engine/backends/cuda/driver/convolution_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "engine/backends/cuda/driver/driver.h"
#include "engine/backends/cuda/driver/measure.h"
#include "engine/base/status_macros.h"
#include "engine/tensor/half.h"

namespace tandem::cuda {
namespace {

// The number of compared results follows from this number of products, within the next bounds.
constexpr int64_t kMostProducts = 1'000'000;
constexpr int64_t kFewestNumbers = 8;
constexpr int64_t kMostNumbers = 64;

// A sum of products, and the sum of their squares.
struct Sum {
  double value = 0;
  double squares = 0;
  void Add(double product) {
    value += product;
    squares += product * product;
  }
};

// The exact results of a convolution of RandomNumbers.
class ExactConvolution {
 public:
  explicit ExactConvolution(const ConvolutionSpec& spec) : s_(spec), numbers_(RandomPattern(spec.type)) {}

  int64_t elements() const {
    switch (s_.kind) {
      case ConvolutionKind::kForward:
        return s_.n * s_.out_h * s_.out_w * s_.k;
      case ConvolutionKind::kGradInput:
        return s_.n * s_.h * s_.w * s_.c;
      default:
        return s_.k * s_.kernel_h * s_.kernel_w * group_c();
    }
  }

  // Returns the products of a result.
  int64_t products() const {
    switch (s_.kind) {
      case ConvolutionKind::kForward:
        return s_.kernel_h * s_.kernel_w * group_c();
      case ConvolutionKind::kGradInput:
        return s_.kernel_h * s_.kernel_w * group_k();
      default:
        return s_.n * s_.out_h * s_.out_w;
    }
  }

  Sum At(int64_t element) const {
    switch (s_.kind) {
      case ConvolutionKind::kForward:
        return Forward(element);
      case ConvolutionKind::kGradInput:
        return GradInput(element);
      default:
        return GradWeight(element);
    }
  }

 private:
  int64_t group_c() const { return s_.c / s_.groups; }
  int64_t group_k() const { return s_.k / s_.groups; }
  // Two divisions by constants are faster than a single division by a variable.
  double Number(int64_t i) const {
    return s_.type == DType::kFloat32 ? numbers_[i % kRandomPatternLength<float>]
                                      : numbers_[i % kRandomPatternLength<uint16_t>];
  }
  double X(int64_t n, int64_t y, int64_t x, int64_t c) const {
    return Number(((n * s_.h + y) * s_.w + x) * s_.c + c);
  }
  double Y(int64_t n, int64_t y, int64_t x, int64_t k) const {
    return Number(((n * s_.out_h + y) * s_.out_w + x) * s_.k + k);
  }
  double Weight(int64_t k, int64_t ky, int64_t kx, int64_t c) const {
    return Number(((k * s_.kernel_h + ky) * s_.kernel_w + kx) * group_c() + c);
  }

  Sum Forward(int64_t element) const {
    const int64_t k = element % s_.k;
    const int64_t ox = element / s_.k % s_.out_w;
    const int64_t oy = element / s_.k / s_.out_w % s_.out_h;
    const int64_t n = element / s_.k / s_.out_w / s_.out_h;
    const int64_t first_c = k / group_k() * group_c();
    Sum sum;
    for (int64_t ky = 0; ky < s_.kernel_h; ++ky) {
      const int64_t y = oy * s_.stride_h - s_.pad_h + ky * s_.dilation_h;
      for (int64_t kx = 0; kx < s_.kernel_w; ++kx) {
        const int64_t x = ox * s_.stride_w - s_.pad_w + kx * s_.dilation_w;
        if (y < 0 || y >= s_.h || x < 0 || x >= s_.w) continue;
        for (int64_t c = 0; c < group_c(); ++c) sum.Add(X(n, y, x, first_c + c) * Weight(k, ky, kx, c));
      }
    }
    if (s_.bias) sum.value += Number(k);
    if (s_.relu && sum.value < 0) sum.value = 0;
    return sum;
  }

  Sum GradInput(int64_t element) const {
    const int64_t c = element % s_.c;
    const int64_t x = element / s_.c % s_.w;
    const int64_t y = element / s_.c / s_.w % s_.h;
    const int64_t n = element / s_.c / s_.w / s_.h;
    const int64_t first_k = c / group_c() * group_k();
    Sum sum;
    for (int64_t ky = 0; ky < s_.kernel_h; ++ky) {
      const int64_t down = y + s_.pad_h - ky * s_.dilation_h;
      if (down < 0 || down % s_.stride_h != 0 || down / s_.stride_h >= s_.out_h) continue;
      for (int64_t kx = 0; kx < s_.kernel_w; ++kx) {
        const int64_t right = x + s_.pad_w - kx * s_.dilation_w;
        if (right < 0 || right % s_.stride_w != 0 || right / s_.stride_w >= s_.out_w) continue;
        for (int64_t k = first_k; k < first_k + group_k(); ++k) {
          sum.Add(Y(n, down / s_.stride_h, right / s_.stride_w, k) * Weight(k, ky, kx, c % group_c()));
        }
      }
    }
    return sum;
  }

  Sum GradWeight(int64_t element) const {
    const int64_t c = element % group_c();
    const int64_t kx = element / group_c() % s_.kernel_w;
    const int64_t ky = element / group_c() / s_.kernel_w % s_.kernel_h;
    const int64_t k = element / group_c() / s_.kernel_w / s_.kernel_h;
    const int64_t x_c = k / group_k() * group_c() + c;
    Sum sum;
    for (int64_t n = 0; n < s_.n; ++n) {
      for (int64_t oy = 0; oy < s_.out_h; ++oy) {
        const int64_t y = oy * s_.stride_h - s_.pad_h + ky * s_.dilation_h;
        if (y < 0 || y >= s_.h) continue;
        for (int64_t ox = 0; ox < s_.out_w; ++ox) {
          const int64_t x = ox * s_.stride_w - s_.pad_w + kx * s_.dilation_w;
          if (x >= 0 && x < s_.w) sum.Add(X(n, y, x, x_c) * Y(n, oy, ox, k));
        }
      }
    }
    return sum;
  }

  const ConvolutionSpec s_;
  const std::vector<double> numbers_;
};

template <typename T>
double NumberOf(const std::byte* bytes) {
  T number;
  std::memcpy(&number, bytes, sizeof(T));
  return static_cast<float>(number);
}

}  // namespace

ConvolutionCheck::ConvolutionCheck(const ConvolutionSpec& spec) : type_(spec.type) {
  const ExactConvolution exact(spec);
  const int64_t count = std::min(
      exact.elements(),
      std::clamp(kMostProducts / std::max<int64_t>(exact.products(), 1), kFewestNumbers, kMostNumbers));
  // With 64 bits, because results may have more than 2^32 elements.
  std::mt19937_64 random(1);
  for (int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<int64_t>(random() % static_cast<uint64_t>(exact.elements()));
    const Sum sum = exact.At(place);
    numbers_.push_back({place, sum.value, std::max({std::sqrt(sum.squares), std::fabs(sum.value), 1e-6})});
  }
}

absl::StatusOr<double> ConvolutionCheck::Error(const void* results, const OwnedStream& stream) const {
  const int64_t bytes = SizeOf(type_);
  std::vector<std::byte> copies(numbers_.size() * bytes);
  for (size_t i = 0; i < numbers_.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(Copy(copies.data() + i * bytes,
                                static_cast<const std::byte*>(results) + numbers_[i].place * bytes, bytes,
                                stream.get()));
  }
  TANDEM_RETURN_IF_ERROR(stream.Synchronize());
  double worst = 0;
  for (size_t i = 0; i < numbers_.size(); ++i) {
    const std::byte* copy = copies.data() + i * bytes;
    const double actual = type_ == DType::kBFloat16  ? NumberOf<BFloat16>(copy)
                          : type_ == DType::kFloat16 ? NumberOf<Float16>(copy)
                                                     : NumberOf<float>(copy);
    const double error = std::fabs(actual - numbers_[i].exact) / numbers_[i].size;
    if (!(error <= worst)) worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
  return worst;
}

double MostConvolutionError(DType type, bool allow_tf32) {
  // A chain of n additions in float32 has an error of about 2.5e-8 sqrt(n), a sum of products in TF32 4e-4.
  // In 16 bits, the rounding of the result alone is up to 4e-3.
  if (type != DType::kFloat32) return 2e-2;
  return allow_tf32 ? 5e-3 : 1e-4;
}

}  // namespace tandem::cuda
