#include "engine/backends/cuda/driver/loops.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/tensor/half.h"

namespace tandem::cuda {
namespace {

bool IsFactorType(DType type) {
  return type == DType::kFloat32 || type == DType::kBFloat16 || type == DType::kFloat16;
}

template <typename T>
void LoadTyped(const void* from, int64_t first, int64_t count, double* to) {
  const T* typed = static_cast<const T*>(from) + first;
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(typed[i]);
}

void Load(DType type, const void* from, int64_t first, int64_t count, double* to) {
  switch (type) {
    case DType::kBFloat16:
      return LoadTyped<BFloat16>(from, first, count, to);
    case DType::kFloat16:
      return LoadTyped<Float16>(from, first, count, to);
    default:
      return LoadTyped<float>(from, first, count, to);
  }
}

template <typename T>
void StoreTyped(const double* from, int64_t count, void* to, int64_t first) {
  T* typed = static_cast<T*>(to) + first;
  for (int64_t i = 0; i < count; ++i) typed[i] = static_cast<T>(static_cast<float>(from[i]));
}

void Store(DType type, const double* from, int64_t count, void* to, int64_t first) {
  switch (type) {
    case DType::kBFloat16:
      return StoreTyped<BFloat16>(from, count, to, first);
    case DType::kFloat16:
      return StoreTyped<Float16>(from, count, to, first);
    default:
      return StoreTyped<float>(from, count, to, first);
  }
}

std::vector<double> LoadAll(DType type, const void* from, int64_t count) {
  std::vector<double> loaded(count);
  Load(type, from, 0, count, loaded.data());
  return loaded;
}

// Returns a dense copy of `rows` rows, `row` elements apart from `first` on, or its transpose.
std::vector<double> LoadMatrix(DType type, const void* from, int64_t first, int64_t rows, int64_t columns,
                               int64_t row, bool transpose) {
  std::vector<double> matrix(rows * columns);
  std::vector<double> line(columns);
  for (int64_t i = 0; i < rows; ++i) {
    if (!transpose) {
      Load(type, from, first + i * row, columns, matrix.data() + i * columns);
      continue;
    }
    Load(type, from, first + i * row, columns, line.data());
    for (int64_t j = 0; j < columns; ++j) matrix[j * rows + i] = line[j];
  }
  return matrix;
}

// Calls function(image, out position, in position, kernel position) for every product of a window within the
// image. Positions are those of pixels.
template <typename Function>
void ForEachTap(const ConvolutionSpec& s, const Function& function) {
  for (int64_t image = 0; image < s.n; ++image) {
    for (int64_t oy = 0; oy < s.out_h; ++oy) {
      for (int64_t ox = 0; ox < s.out_w; ++ox) {
        for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
          const int64_t iy = oy * s.stride_h - s.pad_h + ky * s.dilation_h;
          if (iy < 0 || iy >= s.h) continue;
          for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
            const int64_t ix = ox * s.stride_w - s.pad_w + kx * s.dilation_w;
            if (ix < 0 || ix >= s.w) continue;
            function((image * s.out_h + oy) * s.out_w + ox, (image * s.h + iy) * s.w + ix,
                     ky * s.kernel_w + kx);
          }
        }
      }
    }
  }
}

void Forward(const ConvolutionSpec& s, const void* x_data, const void* weight_data, void* y_data,
             const void* bias_data) {
  const int64_t c = s.c / s.groups;
  const int64_t k = s.k / s.groups;
  const int64_t taps = s.kernel_h * s.kernel_w;
  const std::vector<double> x = LoadAll(s.type, x_data, s.n * s.h * s.w * s.c);
  const std::vector<double> weight = LoadAll(s.type, weight_data, s.k * taps * c);
  // [taps, c of a group, k], so that the innermost loop runs over neighbours.
  std::vector<double> turned(weight.size());
  for (int64_t o = 0; o < s.k; ++o) {
    for (int64_t i = 0; i < taps * c; ++i) turned[i * s.k + o] = weight[o * taps * c + i];
  }
  const std::vector<double> bias = LoadAll(s.type, bias_data, s.bias ? s.k : 0);
  std::vector<double> y(s.n * s.out_h * s.out_w * s.k, 0);
  ForEachTap(s, [&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t group = 0; group < s.groups; ++group) {
      double* sum = y.data() + out * s.k + group * k;
      for (int64_t i = 0; i < c; ++i) {
        const double factor = x[in * s.c + group * c + i];
        const double* w = turned.data() + (tap * c + i) * s.k + group * k;
        for (int64_t o = 0; o < k; ++o) sum[o] += factor * w[o];
      }
    }
  });
  for (size_t i = 0; i < y.size(); ++i) {
    if (s.bias) y[i] += bias[i % s.k];
    if (s.relu && y[i] < 0) y[i] = 0;
  }
  Store(s.type, y.data(), y.size(), y_data, 0);
}

void GradInput(const ConvolutionSpec& s, void* x_data, const void* weight_data, const void* y_data) {
  const int64_t c = s.c / s.groups;
  const int64_t k = s.k / s.groups;
  const int64_t taps = s.kernel_h * s.kernel_w;
  const std::vector<double> y = LoadAll(s.type, y_data, s.n * s.out_h * s.out_w * s.k);
  const std::vector<double> weight = LoadAll(s.type, weight_data, s.k * taps * c);
  std::vector<double> x(s.n * s.h * s.w * s.c, 0);
  ForEachTap(s, [&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t o = 0; o < s.k; ++o) {
      const double factor = y[out * s.k + o];
      const double* w = weight.data() + (o * taps + tap) * c;
      double* sum = x.data() + in * s.c + o / k * c;
      for (int64_t i = 0; i < c; ++i) sum[i] += factor * w[i];
    }
  });
  Store(s.type, x.data(), x.size(), x_data, 0);
}

void GradWeight(const ConvolutionSpec& s, const void* x_data, void* weight_data, const void* y_data) {
  const int64_t c = s.c / s.groups;
  const int64_t k = s.k / s.groups;
  const int64_t taps = s.kernel_h * s.kernel_w;
  const std::vector<double> x = LoadAll(s.type, x_data, s.n * s.h * s.w * s.c);
  const std::vector<double> y = LoadAll(s.type, y_data, s.n * s.out_h * s.out_w * s.k);
  std::vector<double> weight(s.k * taps * c, 0);
  ForEachTap(s, [&](int64_t out, int64_t in, int64_t tap) {
    for (int64_t o = 0; o < s.k; ++o) {
      const double factor = y[out * s.k + o];
      const double* image = x.data() + in * s.c + o / k * c;
      double* sum = weight.data() + (o * taps + tap) * c;
      for (int64_t i = 0; i < c; ++i) sum[i] += factor * image[i];
    }
  });
  Store(s.type, weight.data(), weight.size(), weight_data, 0);
}

}  // namespace

absl::Status CheckSpec(const GemmSpec& s) {
  const GemmPlaces places(s);
  if (s.m < 0 || s.n < 0 || s.k < 0 || s.batch < 0 || places.row_a < (s.transpose_a ? s.m : s.k) ||
      places.row_b < (s.transpose_b ? s.k : s.n) || places.row_c < s.n) {
    return absl::InvalidArgumentError(absl::StrCat("a product of ", s.m, "x", s.k, " and ", s.k, "x", s.n,
                                                   ", batch ", s.batch, ", with rows of ", places.row_a, ", ",
                                                   places.row_b, " and ", places.row_c));
  }
  if (!IsFactorType(s.type) || !IsFactorType(s.result_type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a product of ", ToString(s.type), " to ", ToString(s.result_type)));
  }
  return absl::OkStatus();
}

absl::Status CheckSpec(const ConvolutionSpec& s) {
  const bool positive = s.n > 0 && s.c > 0 && s.h > 0 && s.w > 0 && s.k > 0 && s.kernel_h > 0 &&
                        s.kernel_w > 0 && s.out_h > 0 && s.out_w > 0 && s.stride_h > 0 && s.stride_w > 0 &&
                        s.pad_h >= 0 && s.pad_w >= 0 && s.dilation_h > 0 && s.dilation_w > 0 && s.groups > 0;
  const auto out = [](int64_t in, int64_t pad, int64_t dilation, int64_t kernel, int64_t stride) {
    return (in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  };
  if (!positive || s.c % s.groups != 0 || s.k % s.groups != 0 || !IsFactorType(s.type) ||
      s.out_h != out(s.h, s.pad_h, s.dilation_h, s.kernel_h, s.stride_h) ||
      s.out_w != out(s.w, s.pad_w, s.dilation_w, s.kernel_w, s.stride_w)) {
    return absl::InvalidArgumentError(absl::StrCat("no convolution: ", s.ToString()));
  }
  return absl::OkStatus();
}

void MultiplyByLoops(const GemmSpec& s, const void* a_data, const void* b_data, void* c_data,
                     const void* bias) {
  const GemmPlaces places(s);
  const std::vector<double> addend = LoadAll(s.result_type, bias, s.bias ? s.n : 0);
  std::vector<double> sums(s.n);
  std::vector<double> old(s.n);
  for (int64_t matrix = 0; matrix < s.batch; ++matrix) {
    const std::vector<double> a =
        LoadMatrix(s.type, a_data, matrix * places.stride_a, s.transpose_a ? s.k : s.m,
                   s.transpose_a ? s.m : s.k, places.row_a, s.transpose_a);
    const std::vector<double> b =
        LoadMatrix(s.type, b_data, matrix * places.stride_b, s.transpose_b ? s.n : s.k,
                   s.transpose_b ? s.k : s.n, places.row_b, s.transpose_b);
    for (int64_t i = 0; i < s.m; ++i) {
      std::fill(sums.begin(), sums.end(), 0);
      for (int64_t p = 0; p < s.k; ++p) {
        const double factor = a[i * s.k + p];
        const double* row = b.data() + p * s.n;
        for (int64_t j = 0; j < s.n; ++j) sums[j] += factor * row[j];
      }
      const int64_t first = matrix * places.stride_c + i * places.row_c;
      if (s.beta != 0) Load(s.result_type, c_data, first, s.n, old.data());
      for (int64_t j = 0; j < s.n; ++j) {
        double result = s.alpha * sums[j];
        if (s.beta != 0) result += s.beta * old[j];
        if (s.bias) result += addend[j];
        sums[j] = result;
      }
      Store(s.result_type, sums.data(), s.n, c_data, first);
    }
  }
}

void ConvolveByLoops(const ConvolutionSpec& spec, void* x, void* weight, void* y, const void* bias) {
  switch (spec.kind) {
    case ConvolutionKind::kForward:
      return Forward(spec, x, weight, y, bias);
    case ConvolutionKind::kGradInput:
      return GradInput(spec, x, weight, y);
    case ConvolutionKind::kGradWeight:
      return GradWeight(spec, x, weight, y);
  }
}

}  // namespace tandem::cuda
