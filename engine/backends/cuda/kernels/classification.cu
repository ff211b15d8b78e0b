#include "engine/backends/cuda/kernels/classification.h"

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"
#include "engine/backends/cuda/kernels/sum_rows.h"

namespace tandem::cuda {
namespace {

__device__ __forceinline__ void AddTerms(const MeterTerms& terms) {
  for (int i = 0; i < terms.count; ++i) {
    const double value = terms.is_wide[i] ? *static_cast<const double*>(terms.values[i])
                                          : *static_cast<const float*>(terms.values[i]);
    terms.sums[i] += terms.weights[i] * value;
  }
}

// Returns whether score x of class c is better than the score of `target`. Larger scores are better, of equal
// scores the first, and NaN is better than every number.
__device__ __forceinline__ bool ComesBefore(float x, int64_t c, float target_score, int64_t target) {
  const bool is_number = x == x;
  if (target_score != target_score) return !is_number && c < target;
  if (!is_number) return true;
  return x > target_score || (x == target_score && c < target);
}

template <typename X>
struct CrossEntropyRows {
  static constexpr int kSums = 2;
  CrossEntropy work;

  template <int kLanes>
  __device__ __forceinline__ Sums<2> operator()(int64_t n, Lanes<kLanes> lanes, bool counts) const {
    const int64_t classes = work.classes;
    const X* x = static_cast<const X*>(work.logits) + n * classes;
    const int64_t label = work.labels[n];
    const float score = ToFloat(x[label]);
    float largest = -INFINITY;
    for (int64_t c = lanes.lane; c < classes; c += kLanes) {
      const float logit = ToFloat(x[c]);
      largest = logit > largest ? logit : largest;
    }
    largest = lanes.Reduce(largest, -INFINITY, Maximum());
    float sum = 0;
    int before = 0;
    for (int64_t c = lanes.lane; c < classes; c += kLanes) {
      const float logit = ToFloat(x[c]);
      sum += expf(logit - largest);
      if (work.correct != nullptr) before += ComesBefore(logit, c, score, label) ? 1 : 0;
    }
    sum = lanes.Reduce(sum, 0.0f, Sum());
    if (work.correct != nullptr) before = lanes.Reduce(before, 0, Sum());
    if (counts && (work.probabilities != nullptr || work.grad != nullptr)) {
      const float share = 1 / sum;
      float* probabilities = work.probabilities == nullptr ? nullptr : work.probabilities + n * classes;
      X* grad = work.grad == nullptr ? nullptr : static_cast<X*>(work.grad) + n * classes;
      const float factor = work.grad == nullptr ? 0 : *work.grad_loss / static_cast<float>(work.rows);
      for (int64_t c = lanes.lane; c < classes; c += kLanes) {
        const float probability = expf(ToFloat(x[c]) - largest) * share;
        if (probabilities != nullptr) probabilities[c] = probability;
        if (grad != nullptr) grad[c] = To<X>(factor * (probability - (c == label ? 1.0f : 0.0f)));
      }
    }
    const double loss = log(static_cast<double>(sum)) - (static_cast<double>(score) - largest);
    return {{loss, before < work.k ? 1.0 : 0.0}};
  }
};

struct FinishCrossEntropy {
  int64_t rows;
  float* loss;
  float* correct;
  MeterTerms meter;
  __device__ __forceinline__ void operator()(const Sums<2>& sums) const {
    *loss = static_cast<float>(sums.of[0] / static_cast<double>(rows));
    if (correct != nullptr) *correct = static_cast<float>(sums.of[1]);
    AddTerms(meter);
  }
};

// Writes a count.
struct FinishCount {
  float* count;
  __device__ __forceinline__ void operator()(const Sums<1>& sums) const {
    *count = static_cast<float>(sums.of[0]);
  }
};

struct Smaller {
  __device__ __forceinline__ int64_t operator()(int64_t a, int64_t b) const { return a < b ? a : b; }
};

template <typename X>
struct RankedRows {
  static constexpr int kSums = 1;
  int64_t classes;
  const X* scores;
  const int32_t* labels;
  const float* shares;
  int64_t k;
  int64_t ignored;

  // Returns the class with the largest share, the first of equal shares.
  template <int kLanes>
  __device__ __forceinline__ int64_t Largest(int64_t n, Lanes<kLanes> lanes) const {
    const float* own = shares + n * classes;
    float largest = -INFINITY;
    for (int64_t c = lanes.lane; c < classes; c += kLanes) {
      largest = own[c] > largest ? own[c] : largest;
    }
    largest = lanes.Reduce(largest, -INFINITY, Maximum());
    int64_t first = classes;
    for (int64_t c = lanes.lane; c < classes; c += kLanes) {
      if (own[c] == largest && c < first) first = c;
    }
    first = lanes.Reduce(first, classes, Smaller());
    return first < classes ? first : 0;
  }

  template <int kLanes>
  __device__ __forceinline__ Sums<1> operator()(int64_t n, Lanes<kLanes> lanes, bool) const {
    const X* x = scores + n * classes;
    int64_t target = labels == nullptr ? Largest(n, lanes) : labels[n];
    const bool ranked = target >= 0 && target < classes && (labels == nullptr || target != ignored);
    if (!ranked) target = 0;
    const float score = ToFloat(x[target]);
    int64_t before = 0;
    for (int64_t c = lanes.lane; c < classes; c += kLanes) {
      before += ComesBefore(ToFloat(x[c]), c, score, target) ? 1 : 0;
    }
    before = lanes.Reduce(before, int64_t{0}, Sum());
    return {{ranked && before < k ? 1.0 : 0.0}};
  }
};

struct LabelRows {
  static constexpr int kSums = 1;
  const int32_t* labels;
  int64_t ignored;

  template <int kLanes>
  __device__ __forceinline__ Sums<1> operator()(int64_t n, Lanes<kLanes>, bool) const {
    return {{labels[n] != ignored ? 1.0 : 0.0}};
  }
};

template <typename X>
struct SideRows {
  static constexpr int kSums = 1;
  const X* x;
  const int32_t* labels;
  const float* numbers;

  template <int kLanes>
  __device__ __forceinline__ Sums<1> operator()(int64_t n, Lanes<kLanes>, bool) const {
    const float score = ToFloat(x[n]);
    const bool positive = labels == nullptr ? numbers[n] > 0.5f : labels[n] > 0;
    return {{score == score && (score > 0) == positive ? 1.0 : 0.0}};
  }
};

template <typename X>
void CrossEntropyGrad(int64_t rows, int64_t classes, const float* probabilities, const int32_t* labels,
                      const float* grad_loss, X* grad, Stream stream) {
  ForEach(rows * classes, stream, [=] __device__(int64_t i) {
    const float factor = *grad_loss / static_cast<float>(rows);
    const float target = i % classes == labels[i / classes] ? 1.0f : 0.0f;
    grad[i] = To<X>(factor * (probabilities[i] - target));
  });
}

}  // namespace

void RunCrossEntropy(const CrossEntropy& work, void* sums, Stream stream) {
  const FinishCrossEntropy finish = {work.rows, work.loss, work.correct, work.meter};
  WithNumber(work.type, [&](auto number) {
    using Rows = CrossEntropyRows<decltype(number)>;
    SumRows(work.rows, work.classes, Rows{work}, sums, finish, stream);
  });
}

void RunCrossEntropyGrad(int64_t rows, int64_t classes, const float* probabilities, const int32_t* labels,
                         const float* grad_loss, DType type, void* grad, Stream stream) {
  WithNumber(type, [&](auto number) {
    CrossEntropyGrad(rows, classes, probabilities, labels, grad_loss, static_cast<decltype(number)*>(grad),
                     stream);
  });
}

void RunCountCorrect(int64_t rows, int64_t classes, DType type, const void* scores, const int32_t* labels,
                     const float* shares, int64_t k, int64_t ignored, float* correct, void* sums,
                     Stream stream) {
  WithNumber(type, [&](auto number) {
    using X = decltype(number);
    const RankedRows<X> ranked = {classes, static_cast<const X*>(scores), labels, shares, k, ignored};
    SumRows(rows, classes, ranked, sums, FinishCount{correct}, stream);
  });
}

void RunCountLabels(int64_t count, const int32_t* labels, int64_t ignored, float* counted, void* sums,
                    Stream stream) {
  SumEach(count, LabelRows{labels, ignored}, sums, FinishCount{counted}, stream);
}

void RunCountSides(int64_t elements, DType type, const void* x, const int32_t* labels, const float* numbers,
                   float* right, void* sums, Stream stream) {
  WithNumber(type, [&](auto number) {
    using X = decltype(number);
    const SideRows<X> sides = {static_cast<const X*>(x), labels, numbers};
    SumEach(elements, sides, sums, FinishCount{right}, stream);
  });
}

void AddToMeter(const MeterTerms& terms, Stream stream) {
  ForEach(1, stream, [=] __device__(int64_t) { AddTerms(terms); });
}

}  // namespace tandem::cuda
