#include "engine/backends/cuda/kernels/value_loss.h"

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"
#include "engine/backends/cuda/kernels/sum_rows.h"

namespace tandem::cuda {
namespace {

using Mode = ValueLoss::Mode;

__device__ __forceinline__ float At(const RepeatedNumbers& numbers, int64_t i) {
  return numbers.count == 0 ? 1.0f : numbers.numbers[i % numbers.count];
}

// Computes an element's loss and slope.
struct Element {
  float loss;
  float slope;
};

// Returns log(1 + exp(x)), without overflow.
__device__ __forceinline__ float Softplus(float x) { return (x > 0 ? x : 0.0f) + log1pf(expf(-fabsf(x))); }

// `w` is the positive weight.
__device__ __forceinline__ Element ElementOf(Mode mode, float width, float w, float x, float y) {
  const float difference = x - y;
  const float d = fabsf(difference);
  const float sign = difference > 0 ? 1.0f : (difference < 0 ? -1.0f : 0.0f);
  switch (mode) {
    case Mode::kSquared:
      return {d * d, 2 * difference};
    case Mode::kAbsolute:
      return {d, sign};
    case Mode::kHuber:
      return d < width ? Element{d * d / 2, difference} : Element{width * (d - width / 2), width * sign};
    case Mode::kSmoothL1:
      return d < width ? Element{d * d / (2 * width), difference / width} : Element{d - width / 2, sign};
    case Mode::kLogistic: {
      const float sigmoid = 1 / (1 + expf(-x));
      const float rest = 1 / (1 + expf(x));
      return {w * y * Softplus(-x) + (1 - y) * Softplus(x), (1 - y) * sigmoid - w * y * rest};
    }
    case Mode::kKl:
      return {y == 0 ? 0.0f : y * (logf(y) - x), -y};
    case Mode::kKlOfLogs:
      return {expf(y) * (y - x), -expf(y)};
  }
  return {0, 0};
}

template <typename X>
__device__ __forceinline__ Element ElementAt(const ValueLoss& work, int64_t i) {
  const float x = ToFloat(static_cast<const X*>(work.x)[i]);
  const float y = work.labels == nullptr ? work.numbers[i] : static_cast<float>(work.labels[i]);
  return ElementOf(work.mode, work.width, At(work.positive_weights, i), x, y);
}

template <typename X>
struct ValueRows {
  static constexpr int kSums = 1;
  ValueLoss work;

  template <int kLanes>
  __device__ __forceinline__ Sums<1> operator()(int64_t n, Lanes<kLanes>, bool) const {
    return {{static_cast<double>(At(work.weights, n)) * ElementAt<X>(work, n).loss}};
  }
};

struct FinishQuotient {
  double divisor;
  float* loss;
  __device__ __forceinline__ void operator()(const Sums<1>& sums) const {
    *loss = static_cast<float>(sums.of[0] / divisor);
  }
};

template <typename X>
void ValueLossGrad(const ValueLoss& work, const float* grad_loss, X* grad, Stream stream) {
  ForEach(work.elements, stream, [=] __device__(int64_t i) {
    const auto factor = static_cast<float>(*grad_loss / work.divisor);
    grad[i] = To<X>(factor * At(work.weights, i) * ElementAt<X>(work, i).slope);
  });
}

// The angle between two vectors.
struct Cosine {
  double a_square;
  double b_square;
  double length;
  double cosine;
};

// Pair n. The second vectors have type B.
template <typename A, typename B>
struct CosinePair {
  const A* a;
  const B* b;
  bool alike;

  __device__ CosinePair(const CosineLoss& work, int64_t n)
      : a(static_cast<const A*>(work.first) + n * work.first_stride),
        b(static_cast<const B*>(work.alike == nullptr ? work.second : work.first) + work.second_offset +
          n * work.second_stride),
        alike(work.alike == nullptr || work.alike[n] > 0) {}

  template <int kLanes>
  __device__ Cosine Angle(const CosineLoss& work, Lanes<kLanes> lanes) const {
    double product = 0;
    Cosine result = {0, 0, 0, 0};
    for (int64_t i = lanes.lane; i < work.size; i += kLanes) {
      const double x = ToFloat(a[i]);
      const double y = ToFloat(b[i]);
      product += x * y;
      result.a_square += x * x;
      result.b_square += y * y;
    }
    product = lanes.Reduce(product, 0.0, Sum());
    result.a_square = lanes.Reduce(result.a_square, 0.0, Sum()) + work.epsilon;
    result.b_square = lanes.Reduce(result.b_square, 0.0, Sum()) + work.epsilon;
    result.length = sqrt(result.a_square * result.b_square);
    result.cosine = product / result.length;
    return result;
  }
};

template <typename A, typename B>
struct CosineRows {
  static constexpr int kSums = 1;
  CosineLoss work;

  template <int kLanes>
  __device__ __forceinline__ Sums<1> operator()(int64_t n, Lanes<kLanes> lanes, bool) const {
    const CosinePair<A, B> pair(work, n);
    const double cosine = pair.Angle(work, lanes).cosine;
    const double beyond = cosine - work.margin;
    return {{pair.alike ? 1 - cosine : (beyond < 0 ? 0 : beyond)}};
  }
};

template <typename A, typename B>
struct CosineGradRows {
  CosineLoss work;
  const float* grad_loss;
  A* grad;

  template <int kLanes>
  __device__ __forceinline__ void operator()(int64_t n, Lanes<kLanes> lanes, bool counts) const {
    const CosinePair<A, B> pair(work, n);
    const Cosine angle = pair.Angle(work, lanes);
    if (!counts) return;
    const double factor = *grad_loss / (work.sum ? 1 : static_cast<double>(work.count));
    const double slope = factor * (pair.alike ? -1 : (angle.cosine > work.margin ? 1 : 0));
    A* grad_a = grad + n * work.first_stride;
    for (int64_t i = lanes.lane; i < work.size; i += kLanes) {
      const double x = ToFloat(pair.a[i]);
      const double y = ToFloat(pair.b[i]);
      const double by_a = y / angle.length - angle.cosine * x / angle.a_square;
      grad_a[i] = To<A>(static_cast<float>(slope * by_a));
      if (work.alike == nullptr) continue;
      const double by_b = x / angle.length - angle.cosine * y / angle.b_square;
      grad_a[work.second_offset + i] = To<A>(static_cast<float>(slope * by_b));
    }
  }
};

// Calls `function(A(), B())` with the types of the first and the second vectors.
template <typename Function>
void WithVectors(const CosineLoss& work, const Function& function) {
  WithNumber(work.type, [&](auto first) {
    if (work.alike == nullptr) {
      function(first, float());
    } else {
      function(first, first);
    }
  });
}

}  // namespace

void RunValueLoss(const ValueLoss& work, float* loss, void* sums, Stream stream) {
  WithNumber(work.type, [&](auto number) {
    SumEach(work.elements, ValueRows<decltype(number)>{work}, sums, FinishQuotient{work.divisor, loss},
            stream);
  });
}

void RunValueLossGrad(const ValueLoss& work, const float* grad_loss, void* grad, Stream stream) {
  WithNumber(work.type, [&](auto number) {
    ValueLossGrad(work, grad_loss, static_cast<decltype(number)*>(grad), stream);
  });
}

void RunCosineLoss(const CosineLoss& work, float* loss, void* sums, Stream stream) {
  const FinishQuotient finish = {work.sum ? 1 : static_cast<double>(work.count), loss};
  WithVectors(work, [&](auto a, auto b) {
    SumRows(work.count, work.size, CosineRows<decltype(a), decltype(b)>{work}, sums, finish, stream);
  });
}

void RunCosineLossGrad(const CosineLoss& work, const float* grad_loss, void* grad, Stream stream) {
  WithVectors(work, [&](auto a, auto b) {
    using A = decltype(a);
    EachRow(work.count, work.size, CosineGradRows<A, decltype(b)>{work, grad_loss, static_cast<A*>(grad)},
            stream);
  });
}

}  // namespace tandem::cuda
