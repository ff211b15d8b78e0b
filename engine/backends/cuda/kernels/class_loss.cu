#include "engine/backends/cuda/kernels/class_loss.h"

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"
#include "engine/backends/cuda/kernels/sum_rows.h"

namespace tandem::cuda {
namespace {

using Mode = ClassLoss::Mode;

// A row's target. An ignored row has class 0 and does not count.
struct RowTarget {
  bool is_ignored;
  int64_t label;
};

__device__ __forceinline__ RowTarget TargetOf(const ClassLoss& work, int64_t n) {
  if (work.labels == nullptr) return {false, 0};
  const int64_t label = work.labels[n];
  if (label == work.ignored) return {true, 0};
  return {false, label};
}

__device__ __forceinline__ float WeightOf(const ClassLoss& work, int64_t c) {
  return work.weights == nullptr ? 1.0f : work.weights[c];
}

// Returns the divisor of row n.
__device__ __forceinline__ double DivisorOf(const ClassLoss& work, int64_t n) {
  const RowTarget target = TargetOf(work, n);
  if (target.is_ignored) return 0;
  return work.labels == nullptr || work.mode == Mode::kHinge ? 1.0 : WeightOf(work, target.label);
}

// Returns the weight a[c] of the op's header.
__device__ __forceinline__ float Weighted(const ClassLoss& work, int64_t n, int64_t c, int64_t label) {
  const float share = work.labels == nullptr ? work.shares[n * work.classes + c] : (c == label ? 1.0f : 0.0f);
  const auto e = static_cast<float>(work.label_smoothing);
  return WeightOf(work, c) * ((1 - e) * share + e / static_cast<float>(work.classes));
}

// Returns max(0, margin - x[target] + x[c]). NaN stays NaN.
__device__ __forceinline__ float Violation(const ClassLoss& work, float target_score, float score) {
  const float violation = static_cast<float>(work.margin) - target_score + score;
  return violation < 0 ? 0.0f : violation;
}

// The exponents of a softmax.
struct Exponents {
  float largest;
  float sum;
};

template <typename X, int kLanes>
__device__ __forceinline__ Exponents ExponentsOf(const X* x, int64_t classes, Lanes<kLanes> lanes) {
  float largest = -INFINITY;
  for (int64_t c = lanes.lane; c < classes; c += kLanes) {
    const float score = ToFloat(x[c]);
    largest = score > largest ? score : largest;
  }
  largest = lanes.Reduce(largest, -INFINITY, Maximum());
  float sum = 0;
  for (int64_t c = lanes.lane; c < classes; c += kLanes) sum += expf(ToFloat(x[c]) - largest);
  return {largest, lanes.Reduce(sum, 0.0f, Sum())};
}

template <typename X>
struct LossRows {
  static constexpr int kSums = 2;
  ClassLoss work;

  template <int kLanes>
  __device__ __forceinline__ Sums<2> operator()(int64_t n, Lanes<kLanes> lanes, bool) const {
    const X* x = static_cast<const X*>(work.scores) + n * work.classes;
    const RowTarget target = TargetOf(work, n);
    double loss = 0;
    if (work.mode == Mode::kHinge) {
      const float target_score = ToFloat(x[target.label]);
      for (int64_t c = lanes.lane; c < work.classes; c += kLanes) {
        if (c == target.label) continue;
        const double violation = Violation(work, target_score, ToFloat(x[c]));
        loss += work.p == 1 ? violation : violation * violation;
      }
      loss *= static_cast<double>(WeightOf(work, target.label)) / static_cast<double>(work.classes);
    } else {
      Exponents exponents = {0, 1};
      if (work.mode == Mode::kCrossEntropy) exponents = ExponentsOf(x, work.classes, lanes);
      const double log_sum = log(static_cast<double>(exponents.sum));
      for (int64_t c = lanes.lane; c < work.classes; c += kLanes) {
        const float weighted = Weighted(work, n, c, target.label);
        // A class with weight 0 does not count, even if its logarithm is infinite.
        if (weighted == 0) continue;
        loss += weighted * (log_sum - (static_cast<double>(ToFloat(x[c])) - exponents.largest));
      }
    }
    loss = lanes.Reduce(loss, 0.0, Sum());
    return {{target.is_ignored ? 0 : loss, DivisorOf(work, n)}};
  }
};

struct FinishLoss {
  bool sum;
  float* loss;
  float* loss_sum;
  float* weight;
  __device__ __forceinline__ void operator()(const Sums<2>& sums) const {
    const double mean = sums.of[1] == 0 ? 0 : sums.of[0] / sums.of[1];
    *loss = static_cast<float>(sum ? sums.of[0] : mean);
    *loss_sum = static_cast<float>(sums.of[0]);
    *weight = static_cast<float>(sums.of[1]);
  }
};

// Adds up the loss's divisor.
struct DivisorRows {
  static constexpr int kSums = 1;
  ClassLoss work;

  template <int kLanes>
  __device__ __forceinline__ Sums<1> operator()(int64_t n, Lanes<kLanes>, bool) const {
    return {{DivisorOf(work, n)}};
  }
};

struct FinishFactor {
  bool sum;
  const float* grad_loss;
  float* factor;
  __device__ __forceinline__ void operator()(const Sums<1>& sums) const {
    const double divisor = sum ? 1 : sums.of[0];
    *factor = static_cast<float>(divisor == 0 ? 0 : *grad_loss / divisor);
  }
};

template <typename X>
struct GradRows {
  ClassLoss work;
  const float* factor_of_all;
  X* grads;

  template <int kLanes>
  __device__ __forceinline__ void operator()(int64_t n, Lanes<kLanes> lanes, bool counts) const {
    const X* x = static_cast<const X*>(work.scores) + n * work.classes;
    X* grad = grads + n * work.classes;
    const RowTarget target = TargetOf(work, n);
    const float factor = target.is_ignored ? 0 : *factor_of_all;
    if (work.mode == Mode::kHinge) {
      Hinge(x, target, factor, lanes, counts, grad);
      return;
    }
    Exponents exponents = {0, 1};
    float total = 0;
    if (work.mode == Mode::kCrossEntropy) {
      exponents = ExponentsOf(x, work.classes, lanes);
      for (int64_t c = lanes.lane; c < work.classes; c += kLanes) total += Weighted(work, n, c, target.label);
      total = lanes.Reduce(total, 0.0f, Sum());
    }
    if (!counts) return;
    const float scale = factor * total / exponents.sum;
    for (int64_t c = lanes.lane; c < work.classes; c += kLanes) {
      float slope = 0;
      if (!target.is_ignored) {
        slope = -factor * Weighted(work, n, c, target.label);
        if (work.mode == Mode::kCrossEntropy) slope += scale * expf(ToFloat(x[c]) - exponents.largest);
      }
      grad[c] = To<X>(slope);
    }
  }

  template <int kLanes>
  __device__ __forceinline__ void Hinge(const X* x, const RowTarget& target, float factor,
                                        Lanes<kLanes> lanes, bool counts, X* grad) const {
    const float target_score = ToFloat(x[target.label]);
    const float share = factor * WeightOf(work, target.label) / static_cast<float>(work.classes);
    const auto slope_of = [&](float score) {
      const float violation = static_cast<float>(work.margin) - target_score + score;
      return target.is_ignored || violation <= 0 ? 0.0f : share * (work.p == 1 ? 1.0f : 2 * violation);
    };
    float slopes = 0;
    for (int64_t c = lanes.lane; c < work.classes; c += kLanes) {
      if (c != target.label) slopes += slope_of(ToFloat(x[c]));
    }
    slopes = lanes.Reduce(slopes, 0.0f, Sum());
    if (!counts) return;
    for (int64_t c = lanes.lane; c < work.classes; c += kLanes) {
      grad[c] = To<X>(c == target.label ? -slopes : slope_of(ToFloat(x[c])));
    }
  }
};

}  // namespace

void RunClassLoss(const ClassLoss& work, float* loss, float* loss_sum, float* weight, void* sums,
                  Stream stream) {
  const FinishLoss finish = {work.sum, loss, loss_sum, weight};
  WithNumber(work.type, [&](auto number) {
    SumRows(work.rows, work.classes, LossRows<decltype(number)>{work}, sums, finish, stream);
  });
}

void RunClassLossGrad(const ClassLoss& work, const float* grad_loss, void* grad, float* factor, void* sums,
                      Stream stream) {
  SumEach(work.rows, DivisorRows{work}, sums, FinishFactor{work.sum, grad_loss, factor}, stream);
  WithNumber(work.type, [&](auto number) {
    using X = decltype(number);
    EachRow(work.rows, work.classes, GradRows<X>{work, factor, static_cast<X*>(grad)}, stream);
  });
}

}  // namespace tandem::cuda
