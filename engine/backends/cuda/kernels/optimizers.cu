#include "engine/backends/cuda/kernels/optimizers.h"

#include "engine/backends/cuda/kernels/change_kernel.h"
#include "engine/backends/cuda/kernels/reduce.h"

namespace tandem::cuda {
namespace {

// t of the formulas.
__device__ __forceinline__ double TimeOf(UpdateTime time) { return static_cast<double>(*time.step + 1); }

// Returns 1 / sqrt(1 - beta2^t), the factor that turns sqrt(v) into sqrt(vhat).
__device__ __forceinline__ float RootScale(double beta2, double t) {
  return static_cast<float>(1 / sqrt(1 - pow(beta2, t)));
}

template <bool kMomentum>
struct SgdRule {
  static constexpr int kStates = kMomentum ? 1 : 0;
  static constexpr bool kChangesStates = true;
  struct Numbers {
    float rate;
    float momentum;
    float fresh;
    float weight_decay;
    bool nesterov;
    bool is_first;
  };
  SgdUpdate update;
  UpdateTime time;

  __device__ Numbers At(int) const {
    return {static_cast<float>(*time.rate),
            static_cast<float>(update.momentum),
            static_cast<float>(1 - update.dampening),
            static_cast<float>(update.weight_decay),
            update.nesterov,
            *time.step == 0};
  }
  __device__ __forceinline__ static void Change(const Numbers& k, float& p, float grad, float* states) {
    float g = grad + k.weight_decay * p;
    if (kMomentum) {
      const float buffer = k.is_first ? g : k.momentum * states[0] + k.fresh * g;
      states[0] = buffer;
      g = k.nesterov ? g + k.momentum * buffer : buffer;
    }
    p -= k.rate * g;
  }
};

// The numbers of the kinds with two moments.
struct MomentNumbers {
  float beta1;
  float fresh1;
  float beta2;
  float fresh2;
  float weight_decay;
  float keep;  // The parameter's factor. Below 1 with decoupled weight decay.
  float epsilon;
  float moment_rate;  // The factor of the first moment.
  float grad_rate;    // The factor of the gradient.
  float root_scale;   // The factor of sqrt(v).
};

template <typename Update>
__device__ MomentNumbers MomentsOf(const Update& update) {
  MomentNumbers k;
  k.beta1 = static_cast<float>(update.beta1);
  k.fresh1 = static_cast<float>(1 - update.beta1);
  k.beta2 = static_cast<float>(update.beta2);
  k.fresh2 = static_cast<float>(1 - update.beta2);
  k.weight_decay = static_cast<float>(update.weight_decay);
  k.keep = 1;
  k.epsilon = static_cast<float>(update.epsilon);
  k.moment_rate = 0;
  k.grad_rate = 0;
  k.root_scale = 1;
  return k;
}

template <typename Update>
__device__ void Decouple(const Update& update, double rate, MomentNumbers& k) {
  if (!update.decoupled) return;
  k.weight_decay = 0;
  k.keep = static_cast<float>(1 - rate * update.weight_decay);
}

template <bool kAmsgrad>
struct AdamRule {
  static constexpr int kStates = kAmsgrad ? 3 : 2;
  static constexpr bool kChangesStates = true;
  using Numbers = MomentNumbers;
  AdamUpdate update;
  UpdateTime time;

  __device__ Numbers At(int) const {
    MomentNumbers k = MomentsOf(update);
    Decouple(update, *time.rate, k);
    k.moment_rate = static_cast<float>(*time.rate / (1 - pow(update.beta1, TimeOf(time))));
    k.root_scale = RootScale(update.beta2, TimeOf(time));
    return k;
  }
  __device__ __forceinline__ static void Change(const Numbers& k, float& p, float grad, float* states) {
    const float g = grad + k.weight_decay * p;
    const float first = k.beta1 * states[0] + k.fresh1 * g;
    float second = k.beta2 * states[1] + k.fresh2 * g * g;
    states[0] = first;
    states[1] = second;
    if (kAmsgrad) {
      second = states[2] > second ? states[2] : second;
      states[2] = second;
    }
    p = k.keep * p - k.moment_rate * first / (k.root_scale * sqrtf(second) + k.epsilon);
  }
};

struct NadamRule {
  static constexpr int kStates = 2;
  static constexpr bool kChangesStates = true;
  using Numbers = MomentNumbers;
  NadamUpdate update;
  UpdateTime time;
  const NadamFactors* factors;

  __device__ Numbers At(int) const {
    MomentNumbers k = MomentsOf(update);
    Decouple(update, *time.rate, k);
    k.moment_rate = static_cast<float>(*time.rate * factors->moment);
    k.grad_rate = static_cast<float>(*time.rate * factors->gradient);
    k.root_scale = RootScale(update.beta2, TimeOf(time));
    return k;
  }
  __device__ __forceinline__ static void Change(const Numbers& k, float& p, float grad, float* states) {
    const float g = grad + k.weight_decay * p;
    const float first = k.beta1 * states[0] + k.fresh1 * g;
    const float second = k.beta2 * states[1] + k.fresh2 * g * g;
    states[0] = first;
    states[1] = second;
    p = k.keep * p - (k.moment_rate * first + k.grad_rate * g) / (k.root_scale * sqrtf(second) + k.epsilon);
  }
};

struct AdamaxRule {
  static constexpr int kStates = 2;
  static constexpr bool kChangesStates = true;
  using Numbers = MomentNumbers;
  AdamaxUpdate update;
  UpdateTime time;

  __device__ Numbers At(int) const {
    MomentNumbers k = MomentsOf(update);
    k.moment_rate = static_cast<float>(*time.rate / (1 - pow(update.beta1, TimeOf(time))));
    return k;
  }
  __device__ __forceinline__ static void Change(const Numbers& k, float& p, float grad, float* states) {
    const float g = grad + k.weight_decay * p;
    const float first = k.beta1 * states[0] + k.fresh1 * g;
    const float old = k.beta2 * states[1];
    const float fresh = fabsf(g) + k.epsilon;
    const float most = old > fresh ? old : fresh;
    states[0] = first;
    states[1] = most;
    p -= k.moment_rate * first / most;
  }
};

__device__ __forceinline__ float LambRatio(const MomentNumbers& k, float p, float m, float v) {
  return k.moment_rate * m / (k.root_scale * sqrtf(v) + k.epsilon) + k.weight_decay * p;
}

__device__ MomentNumbers LambNumbers(const LambUpdate& update, UpdateTime time) {
  MomentNumbers k = MomentsOf(update);
  k.moment_rate = static_cast<float>(1 / (1 - pow(update.beta1, TimeOf(time))));
  k.root_scale = RootScale(update.beta2, TimeOf(time));
  return k;
}

// Computes a piece's new moments, and the thread's share of the sums of squares of the parameter and of r.
struct LambSums {
  double parameters = 0;
  double ratios = 0;
};
template <typename X>
__device__ LambSums LambPiece(const MomentNumbers& k, const TensorChange& tensor, PieceRange range) {
  const X* source = static_cast<const X*>(tensor.source);
  LambSums sums;
  for (int64_t i = range.begin + threadIdx.x; i < range.end; i += blockDim.x) {
    const float g = ToFloat(source[i]);
    const float m = k.beta1 * tensor.states[0][i] + k.fresh1 * g;
    const float v = k.beta2 * tensor.states[1][i] + k.fresh2 * g * g;
    tensor.states[0][i] = m;
    tensor.states[1][i] = v;
    const float p = tensor.target[i];
    const float r = LambRatio(k, p, m, v);
    sums.parameters += static_cast<double>(p) * p;
    sums.ratios += static_cast<double>(r) * r;
  }
  return sums;
}

TANDEM_KERNEL LambMomentsKernel(LambUpdate update, ChangeTable table, UpdateTime time, double* squares) {
  if (!Applies(table.apply)) return;
  __shared__ MomentNumbers k;
  if (threadIdx.x == 0) k = LambNumbers(update, time);
  __syncthreads();
  const TensorChange& tensor = table.tensors[table.pieces[blockIdx.x].tensor];
  const PieceRange range(table, tensor, table.pieces[blockIdx.x]);
  LambSums sums;
  WithSource(tensor, [&](auto number) { sums = LambPiece<decltype(number)>(k, tensor, range); });
  sums.parameters = ReduceBlock(sums.parameters, 0.0, Sum());
  sums.ratios = ReduceBlock(sums.ratios, 0.0, Sum());
  if (threadIdx.x != 0) return;
  squares[2 * blockIdx.x] = sums.parameters;
  squares[2 * blockIdx.x + 1] = sums.ratios;
}

// Computes |parameter| / |r| of each tensor.
void LambTrust(const ChangeTable& table, const double* squares, double* trust, Stream stream) {
  ForEach(table.tensor_count, stream, [=] __device__(int64_t tensor) {
    int first = 0;
    for (int64_t i = 0; i < tensor; ++i) {
      first += static_cast<int>((table.tensors[i].elements + table.piece_size - 1) / table.piece_size);
    }
    double parameters = 0;
    double ratios = 0;
    for (int piece = first; piece < table.piece_count && table.pieces[piece].tensor == tensor; ++piece) {
      parameters += squares[2 * piece];
      ratios += squares[2 * piece + 1];
    }
    trust[tensor] = parameters != 0 && ratios != 0 ? sqrt(parameters / ratios) : 1;
  });
}

struct LambRule {
  static constexpr int kStates = 2;
  static constexpr bool kChangesStates = false;
  using Numbers = MomentNumbers;
  LambUpdate update;
  UpdateTime time;
  const double* trust;

  __device__ Numbers At(int tensor) const {
    MomentNumbers k = LambNumbers(update, time);
    k.grad_rate = static_cast<float>(*time.rate * trust[tensor]);
    return k;
  }
  __device__ __forceinline__ static void Change(const Numbers& k, float& p, float, float* states) {
    p -= k.grad_rate * LambRatio(k, p, states[0], states[1]);
  }
};

struct AdagradRule {
  static constexpr int kStates = 1;
  static constexpr bool kChangesStates = true;
  struct Numbers {
    float rate;
    float epsilon;
    float weight_decay;
    float initial;
    bool is_first;
  };
  AdagradUpdate update;
  UpdateTime time;

  __device__ Numbers At(int) const {
    return {static_cast<float>(*time.rate / (1 + (TimeOf(time) - 1) * update.lr_decay)),
            static_cast<float>(update.epsilon), static_cast<float>(update.weight_decay),
            static_cast<float>(update.initial_accumulator), *time.step == 0};
  }
  __device__ __forceinline__ static void Change(const Numbers& k, float& p, float grad, float* states) {
    const float g = grad + k.weight_decay * p;
    const float sum = (k.is_first ? k.initial : states[0]) + g * g;
    states[0] = sum;
    p -= k.rate * g / (sqrtf(sum) + k.epsilon);
  }
};

struct RateNumbers {
  float rate;
  float alpha;
  float fresh;
  float epsilon;
  float weight_decay;
  float momentum;
};

struct AdadeltaRule {
  static constexpr int kStates = 2;
  static constexpr bool kChangesStates = true;
  using Numbers = RateNumbers;
  AdadeltaUpdate update;
  UpdateTime time;

  __device__ Numbers At(int) const {
    return {static_cast<float>(*time.rate),          static_cast<float>(update.rho),
            static_cast<float>(1 - update.rho),      static_cast<float>(update.epsilon),
            static_cast<float>(update.weight_decay), 0};
  }
  __device__ __forceinline__ static void Change(const Numbers& k, float& p, float grad, float* states) {
    const float g = grad + k.weight_decay * p;
    const float square = k.alpha * states[0] + k.fresh * g * g;
    const float step = sqrtf(states[1] + k.epsilon) / sqrtf(square + k.epsilon) * g;
    states[0] = square;
    states[1] = k.alpha * states[1] + k.fresh * step * step;
    p -= k.rate * step;
  }
};

template <bool kCentered, bool kMomentum>
struct RmspropRule {
  static constexpr int kStates = 1 + (kCentered ? 1 : 0) + (kMomentum ? 1 : 0);
  static constexpr bool kChangesStates = true;
  using Numbers = RateNumbers;
  RmspropUpdate update;
  UpdateTime time;

  __device__ Numbers At(int) const {
    return {static_cast<float>(*time.rate),          static_cast<float>(update.alpha),
            static_cast<float>(1 - update.alpha),    static_cast<float>(update.epsilon),
            static_cast<float>(update.weight_decay), static_cast<float>(update.momentum)};
  }
  __device__ __forceinline__ static void Change(const Numbers& k, float& p, float grad, float* states) {
    const float g = grad + k.weight_decay * p;
    float variance = k.alpha * states[0] + k.fresh * g * g;
    states[0] = variance;
    if constexpr (kCentered) {
      const float mean = k.alpha * states[1] + k.fresh * g;
      states[1] = mean;
      variance -= mean * mean;
      // It is at least 0 except for rounding.
      variance = variance < 0 ? 0 : variance;
    }
    float step = g / (sqrtf(variance) + k.epsilon);
    if constexpr (kMomentum) {
      step += k.momentum * states[kStates - 1];
      states[kStates - 1] = step;
    }
    p -= k.rate * step;
  }
};

struct LionRule {
  static constexpr int kStates = 1;
  static constexpr bool kChangesStates = true;
  struct Numbers {
    float rate;
    float beta1;
    float fresh1;
    float beta2;
    float fresh2;
    float weight_decay;
  };
  LionUpdate update;
  UpdateTime time;

  __device__ Numbers At(int) const {
    return {static_cast<float>(*time.rate),       static_cast<float>(update.beta1),
            static_cast<float>(1 - update.beta1), static_cast<float>(update.beta2),
            static_cast<float>(1 - update.beta2), static_cast<float>(update.weight_decay)};
  }
  __device__ __forceinline__ static void Change(const Numbers& k, float& p, float g, float* states) {
    const float mix = k.beta1 * states[0] + k.fresh1 * g;
    // NaN stays NaN.
    const float sign = mix > 0 ? 1.0f : (mix < 0 ? -1.0f : mix);
    states[0] = k.beta2 * states[0] + k.fresh2 * g;
    p -= k.rate * (sign + k.weight_decay * p);
  }
};

}  // namespace

void RunUpdate(const SgdUpdate& update, const ChangeTable& table, UpdateTime time, void*, Stream stream) {
  if (update.momentum != 0) {
    Change(SgdRule<true>{update, time}, table, stream);
  } else {
    Change(SgdRule<false>{update, time}, table, stream);
  }
}

void RunUpdate(const AdamUpdate& update, const ChangeTable& table, UpdateTime time, void*, Stream stream) {
  if (update.amsgrad) {
    Change(AdamRule<true>{update, time}, table, stream);
  } else {
    Change(AdamRule<false>{update, time}, table, stream);
  }
}

void RunUpdate(const NadamUpdate& update, const ChangeTable& table, UpdateTime time, void* scratch,
               Stream stream) {
  auto* factors = static_cast<NadamFactors*>(scratch);
  // A single thread computes the long sum for all blocks.
  ForEach(1, stream, [=] __device__(int64_t) {
    *factors = NadamFactorsAt(update.beta1, update.momentum_decay, TimeOf(time));
  });
  Change(NadamRule{update, time, factors}, table, stream);
}

void RunUpdate(const AdamaxUpdate& update, const ChangeTable& table, UpdateTime time, void*, Stream stream) {
  Change(AdamaxRule{update, time}, table, stream);
}

void RunUpdate(const LambUpdate& update, const ChangeTable& table, UpdateTime time, void* scratch,
               Stream stream) {
  auto* trust = static_cast<double*>(scratch);
  double* squares = trust + table.tensor_count;
  InParts(table.piece_count, MostBlocks(), [&](unsigned first, unsigned count) {
    ChangeTable part = table;
    part.pieces += first;
    Launch(LambMomentsKernel, {count}, Threads(), stream, update, part, time, squares + 2 * first);
  });
  LambTrust(table, squares, trust, stream);
  Change(LambRule{update, time, trust}, table, stream);
}

void RunUpdate(const AdagradUpdate& update, const ChangeTable& table, UpdateTime time, void*, Stream stream) {
  Change(AdagradRule{update, time}, table, stream);
}

void RunUpdate(const AdadeltaUpdate& update, const ChangeTable& table, UpdateTime time, void*,
               Stream stream) {
  Change(AdadeltaRule{update, time}, table, stream);
}

void RunUpdate(const RmspropUpdate& update, const ChangeTable& table, UpdateTime time, void*, Stream stream) {
  if (update.centered && update.momentum != 0) {
    Change(RmspropRule<true, true>{update, time}, table, stream);
  } else if (update.centered) {
    Change(RmspropRule<true, false>{update, time}, table, stream);
  } else if (update.momentum != 0) {
    Change(RmspropRule<false, true>{update, time}, table, stream);
  } else {
    Change(RmspropRule<false, false>{update, time}, table, stream);
  }
}

void RunUpdate(const LionUpdate& update, const ChangeTable& table, UpdateTime time, void*, Stream stream) {
  Change(LionRule{update, time}, table, stream);
}

}  // namespace tandem::cuda
