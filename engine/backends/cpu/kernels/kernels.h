#ifndef TANDEM_ENGINE_BACKENDS_CPU_KERNELS_KERNELS_H_
#define TANDEM_ENGINE_BACKENDS_CPU_KERNELS_KERNELS_H_

#include <cstdint>

namespace tandem::cpu {

// The "batch-blocked" layout of a float32 tensor [N, C, H, W]: [ceil(N / 16)][C][H][W][16], with sixteen
// images side by side in the last dimension. Every element-wise step and every convolution is then a vector
// operation over images, for any number of channels. Layouts that block channels would pad 20 channels to 32.
// Lanes past N hold zero in gradients and finite numbers elsewhere.
inline constexpr int64_t kBlock = 16;

// A convolution over batch-blocked images with stride 1, without padding, dilation or groups. Weights are
// OIHW.
struct ConvSizes {
  int64_t blocks = 0;  // ceil(N / 16)
  int64_t in_channels = 0;
  int64_t in_height = 0;
  int64_t in_width = 0;
  int64_t out_channels = 0;
  int64_t kernel_height = 0;
  int64_t kernel_width = 0;

  // Always inline, so that no library of wider instructions defines them for the rest of the program.
  __attribute__((always_inline)) int64_t out_height() const { return in_height - kernel_height + 1; }
  __attribute__((always_inline)) int64_t out_width() const { return in_width - kernel_width + 1; }
};

// A dense layer over batch-blocked rows: x is [blocks][inputs][16], weight [outputs][inputs].
struct LinearSizes {
  int64_t blocks = 0;
  int64_t inputs = 0;
  int64_t outputs = 0;
};

// Pooling over [outer][height][width][lanes]. Batch-blocked, channel-blocked, channels-last and plain images
// (lanes = 1) all have this form.
struct PoolSizes {
  int64_t outer = 0;
  int64_t in_height = 0;
  int64_t in_width = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t lanes = 0;
  int64_t window_height = 0;
  int64_t window_width = 0;
  int64_t stride_height = 0;
  int64_t stride_width = 0;
  int64_t padding_height = 0;  // At the top.
  int64_t padding_width = 0;   // At the left.
  bool count_padding = false;  // Average pooling: padding counts in the divisor.
};

// Scores of attention: rows [..., queries] with `keys` numbers.
struct AttentionSizes {
  int64_t queries = 0;
  int64_t keys = 0;
  float scale = 1;
  bool causal = false;  // Query q sees keys 0 to q.
};

// The logarithm of the sum of e^x of a row is largest + log(sum).
struct SoftmaxSum {
  float largest = 0;
  float sum = 0;  // Of e^(x - largest).
};

// A tensor [N, C, ...] by its channels: [outer][groups][positions][lanes]. If channel_lanes, a group has
// `lanes` channels, and lanes past `channels` are padding. Otherwise a group is a single channel, and lanes
// are samples (1 in plain tensors). Lanes past `samples` are then padding. Lanes are 1, 8 or 16. Padding is 0
// in all written tensors. In tiled images (tiles.h), positions are the pixels of 16 samples, and lanes are 32
// channels.
struct ChannelSizes {
  int64_t outer = 0;
  int64_t groups = 0;
  int64_t positions = 0;
  int64_t lanes = 0;
  bool channel_lanes = false;
  int64_t samples = 0;
  int64_t channels = 0;
  int64_t parts = 1;      // The number of parts of `outer` in sums over it. At most `outer`.
  bool bfloat16 = false;  // The type of the elements, else float32. Only with 16 lanes of channels.
  bool tiled = false;     // bfloat16 with 32 lanes of channels.
};

// The doubles of a part's sums over a group: two for each channel lane, and a count.
inline constexpr int64_t kPartialLanes = 32;
inline constexpr int64_t kChannelPartial = 2 * kPartialLanes + 1;

// factor (x - center) + offset, each a number for each channel. Then max(0, .) if `relu`.
struct ChannelAffine {
  const float* center = nullptr;
  const float* factor = nullptr;
  const float* offset = nullptr;
  bool relu = false;
};

// The inputs of a normalisation's gradient. All except x and dy may be null.
struct ChannelGradArrays {
  const void* x = nullptr;
  const void* dy = nullptr;
  const void* dy2 = nullptr;  // Added to dy.
  const void* y = nullptr;    // Output of a ReLU: the gradient is 0 where it is 0.
  void* dz = nullptr;         // Receives the gradient after dy2 and y. May be dy's memory.
};

struct ChannelGradTerms {
  const float* slope = nullptr;
  const float* shift = nullptr;
};

struct SgdCoefficients {
  float learning_rate = 0;
  float momentum = 0;
  float dampening = 0;
  float weight_decay = 0;
  bool nesterov = false;
  bool first_step = false;  // The buffer starts as the gradient.
};

// Coefficients that the optimizers' kernels share: g = grad + weight_decay parameter, and 1 - beta in full
// precision.
struct MomentCoefficients {
  float beta1 = 0;
  float fresh1 = 0;  // 1 - beta1
  float beta2 = 0;
  float fresh2 = 0;  // 1 - beta2
  float epsilon = 0;
  float weight_decay = 0;
};

struct AdamCoefficients : MomentCoefficients {
  float keep = 0;         // The factor of the parameter in decoupled weight decay.
  float moment_rate = 0;  // The update is (moment_rate m + grad_rate g) / (root_scale sqrt(v) + epsilon).
  float grad_rate = 0;
  float root_scale = 0;
};

struct RmspropCoefficients {
  float rate = 0;
  float alpha = 0;
  float fresh = 0;  // 1 - alpha
  float epsilon = 0;
  float weight_decay = 0;
  float momentum = 0;
};

struct NormalizeSizes {
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t positions = 0;
  bool blocked = false;  // Whether y is batch-blocked. x is row-major.
};

// The own kernels do not offer wider kernels.
inline constexpr int64_t kMaxKernelWidth = 5;

constexpr int64_t WinogradWeightFloats(const ConvSizes& sizes) {
  return 36 * sizes.out_channels * sizes.in_channels;
}
constexpr int64_t WinogradGradFloats(const ConvSizes& sizes) {
  return 36 * ((sizes.out_channels + 3) / 4) * ((sizes.in_channels + 3) / 4) * 16;
}

// The inner loops, for each instruction set. All take a half-open range [begin, end) of work items, so that a
// team can share them. Each comment names its items. An output element is computed within a single item, in a
// fixed order, so results do not depend on the sharing.
struct Kernels {
  const char* isa;

  // y = conv(x, weight) + bias, then max(0, y) if `relu`. `bias` may be null. Items: blocks * out_height.
  void (*conv_forward)(const ConvSizes& sizes, const float* x, const float* weight, const float* bias,
                       bool relu, float* y, int64_t begin, int64_t end);
  // conv_forward and a max pooling by 2x2 with its indices, without storing the convolution's result.
  // `scratch` is a thread's own, with conv_max_pool_scratch(sizes) floats. Items: blocks * (out_height / 2).
  int64_t (*conv_max_pool_scratch)(const ConvSizes& sizes);
  void (*conv_max_pool)(const ConvSizes& sizes, const float* x, const float* weight, const float* bias,
                        float* y, uint8_t* index, float* scratch, int64_t begin, int64_t end);
  // dx from dy. Items: blocks * in_height.
  void (*conv_grad_input)(const ConvSizes& sizes, const float* dy, const float* weight, float* dx,
                          int64_t begin, int64_t end);
  // dweight from x and dy. Items: out_channels.
  void (*conv_grad_weight)(const ConvSizes& sizes, const float* x, const float* dy, float* dweight,
                           int64_t begin, int64_t end);
  // As conv_grad_weight, but takes the gradient `dpooled` of a max pooling after the convolution, and never
  // stores the whole dy. Lanes of `pool` are 16. `scratch` is a thread's own, with
  // pooled_grad_weight_scratch(sizes) floats.
  int64_t (*pooled_grad_weight_scratch)(const ConvSizes& sizes);
  void (*pooled_grad_weight)(const ConvSizes& sizes, const PoolSizes& pool, const float* x,
                             const uint8_t* index, const float* dpooled, float* dweight, float* scratch,
                             int64_t begin, int64_t end);
  // The same passes for square kernels of 3 or 5, through the points of winograd.inc. `u` is
  // [36][out_channels] [in_channels]. `scratch` is a thread's own, with winograd_scratch(sizes) floats.
  int64_t (*winograd_scratch)(const ConvSizes& sizes);
  // u from the weights. Items: ceil(out_channels * in_channels / 16).
  void (*winograd_weights)(const ConvSizes& sizes, const float* weight, float* u, int64_t begin, int64_t end);
  // If `index` is given, y is pooled by 2x2 as in conv_max_pool, and `relu` must be false. Items: blocks *
  // ceil(out_height / (7 - kernel_height)).
  void (*winograd_forward)(const ConvSizes& sizes, const float* x, const float* u, const float* bias,
                           bool relu, float* y, uint8_t* index, float* scratch, int64_t begin, int64_t end);
  // Items: blocks.
  void (*winograd_grad_input)(const ConvSizes& sizes, const float* dy, const float* u, float* dx,
                              float* scratch, int64_t begin, int64_t end);
  // du has WinogradGradFloats(sizes) floats in its own order. Items: 6.
  void (*winograd_grad_points)(const ConvSizes& sizes, const float* x, const float* dy, float* du,
                               float* scratch, int64_t begin, int64_t end);
  // dweight from du. Items: ceil(out_channels / 4).
  void (*winograd_grad_weight)(const ConvSizes& sizes, const float* du, float* dweight, int64_t begin,
                               int64_t end);
  // dbias[c] = the sum of dy [blocks][channels][positions][16]. Items: channels.
  void (*grad_bias)(int64_t blocks, int64_t channels, int64_t positions, const float* dy, float* dbias,
                    int64_t begin, int64_t end);

  // y = x weight^T + bias, then max(0, y) if `relu`. Items: outputs.
  void (*linear_forward)(const LinearSizes& sizes, const float* x, const float* weight, const float* bias,
                         bool relu, float* y, int64_t begin, int64_t end);
  // dx = dy weight. Items: inputs.
  void (*linear_grad_input)(const LinearSizes& sizes, const float* dy, const float* weight, float* dx,
                            int64_t begin, int64_t end);
  // dweight = dy^T x. `x_rows` is x as plain rows [blocks * 16][inputs]. Items: outputs.
  void (*linear_grad_weight)(const LinearSizes& sizes, const float* x_rows, const float* dy, float* dweight,
                             int64_t begin, int64_t end);

  // Converts plain [rows][columns] to [ceil(rows / 16)][columns][16]. Lanes past `rows` become zero. Items:
  // blocks.
  void (*block_rows)(int64_t rows, int64_t columns, const float* plain, float* blocked, int64_t begin,
                     int64_t end);
  // Converts back. If `pad`, also writes the lanes past `rows`. Items: blocks.
  void (*unblock_rows)(int64_t rows, int64_t columns, const float* blocked, float* plain, bool pad,
                       int64_t begin, int64_t end);

  // y = factors[c] x + offsets[c]. Items: blocks if y is blocked, else rows.
  void (*normalize_bytes)(const NormalizeSizes& sizes, const uint8_t* x, const float* factors,
                          const float* offsets, float* y, int64_t begin, int64_t end);
  // Computes in double precision, because floats may be far from zero compared with their deviation, or near
  // float's limits.
  void (*normalize_floats)(const NormalizeSizes& sizes, const float* x, const double* factors,
                           const double* offsets, float* y, int64_t begin, int64_t end);

  // `index` receives the position within the window, row-major. Items: outer.
  void (*max_pool)(const PoolSizes& sizes, const float* x, float* y, uint8_t* index, int64_t begin,
                   int64_t end);
  void (*max_pool_grad)(const PoolSizes& sizes, const uint8_t* index, const float* dy, float* dx,
                        int64_t begin, int64_t end);
  void (*average_pool)(const PoolSizes& sizes, const float* x, float* y, int64_t begin, int64_t end);
  void (*average_pool_grad)(const PoolSizes& sizes, const float* dy, float* dx, int64_t begin, int64_t end);

  // The statistics of each part, for each channel lane (or the single channel): the mean, from kPartialLanes
  // on the sum of squared differences from the mean, and at 2 kPartialLanes the count. Each item has
  // kChannelPartial doubles. Items: groups * parts.
  void (*channel_moments)(const ChannelSizes& sizes, const void* x, double* partials, int64_t begin,
                          int64_t end);
  // y = affine(x). `addend`, if not null, is added before the ReLU. Items: outer * groups.
  void (*channel_normalize)(const ChannelSizes& sizes, const ChannelAffine& affine, const void* x,
                            const void* addend, void* y, int64_t begin, int64_t end);
  // The sums of dz and, from kPartialLanes on, of dz (x - center). dz is dy + dy2 after the ReLU's gradient:
  // of `y`, or of affine(x) if affine.relu. Each item has kChannelPartial doubles. Items: groups * parts.
  void (*channel_grad_sums)(const ChannelSizes& sizes, const ChannelAffine& affine,
                            const ChannelGradArrays& arrays, double* partials, int64_t begin, int64_t end);
  // dx = factor dz + slope (x - center) + shift. dz is dy, after the gradient of the ReLU of affine(x) if
  // affine.relu. Items: outer * groups.
  void (*channel_grad)(const ChannelSizes& sizes, const ChannelAffine& affine, const ChannelGradTerms& terms,
                       const ChannelGradArrays& arrays, void* dx, int64_t begin, int64_t end);

  // y = softmax(x), over `count` numbers. Both may be the same memory.
  SoftmaxSum (*softmax_row)(const float* x, int64_t count, float* y);
  // weights = softmax(scale scores) of each row, over the keys that its query sees. Both may be the same
  // tensor. Items: rows.
  void (*attention_softmax)(const AttentionSizes& sizes, const float* scores, float* weights, int64_t begin,
                            int64_t end);
  void (*attention_softmax_grad)(const AttentionSizes& sizes, const float* weights, const float* grads,
                                 float* grad_scores, int64_t begin, int64_t end);

  // Copy up to sixteen rows, `stride` numbers apart, to [columns][16] with zeros in further lanes, and back.
  void (*gather_lanes)(int64_t rows, int64_t columns, int64_t stride, const float* plain, float* blocked);
  void (*scatter_lanes)(int64_t rows, int64_t columns, int64_t stride, const float* blocked, float* plain);
  // A step of an LSTM, with [units][16] of each gate and state. On entry `gates` holds weight h + bias of the
  // gates i, f, g and o. On return it holds the gates after their functions.
  void (*lstm_step)(int64_t units, const float* projected, const float* c_before, float* gates, float* c,
                    float* h);
  // `grad_c` is c's gradient on entry and c_before's on return.
  void (*lstm_step_grad)(int64_t units, const float* gates, const float* c_before, const float* c,
                         const float* grad_y, const float* grad_h, float* grad_c, float* grad_gates);

  // Items: elements.
  void (*relu)(const float* x, float* y, int64_t begin, int64_t end);
  void (*relu_grad)(const float* y, const float* dy, float* dx, int64_t begin, int64_t end);
  void (*gelu)(const float* x, float* y, int64_t begin, int64_t end);
  void (*gelu_grad)(const float* x, const float* dy, float* dx, int64_t begin, int64_t end);
  void (*add)(const float* a, const float* b, float* y, int64_t begin, int64_t end);
  void (*scale)(const float* x, float factor, float* y, int64_t begin, int64_t end);
  void (*sgd)(const SgdCoefficients& coefficients, float* parameter, const float* grad, float* buffer,
              int64_t begin, int64_t end);
  // Optimizers, as in engine/graph/ops. `largest` may be null.
  void (*adam)(const AdamCoefficients& coefficients, float* parameter, const float* grad, float* m, float* v,
               float* largest, int64_t begin, int64_t end);
  // The update is moment_rate m / norm.
  void (*adamax)(const AdamCoefficients& coefficients, float* parameter, const float* grad, float* m,
                 float* norm, int64_t begin, int64_t end);
  // Updates the moments. `squares` receives the sums of squares of the parameter and of r.
  void (*lamb_moments)(const AdamCoefficients& coefficients, const float* parameter, const float* grad,
                       float* m, float* v, double* squares, int64_t begin, int64_t end);
  // parameter -= rate r
  void (*lamb_apply)(const AdamCoefficients& coefficients, float rate, float* parameter, const float* m,
                     const float* v, int64_t begin, int64_t end);
  void (*adagrad)(float rate, float epsilon, float weight_decay, float* parameter, const float* grad,
                  float* sum, int64_t begin, int64_t end);
  // coefficients.alpha is rho.
  void (*adadelta)(const RmspropCoefficients& coefficients, float* parameter, const float* grad,
                   float* square, float* square_step, int64_t begin, int64_t end);
  // `mean` and `buffer` may be null.
  void (*rmsprop)(const RmspropCoefficients& coefficients, float* parameter, const float* grad, float* square,
                  float* mean, float* buffer, int64_t begin, int64_t end);
  void (*lion)(const MomentCoefficients& coefficients, float rate, float* parameter, const float* grad,
               float* m, int64_t begin, int64_t end);
  double (*sum_of_squares)(const float* x, int64_t begin, int64_t end);
  // y = x clamped to [-limit, limit].
  void (*clamp)(const float* x, float limit, float* y, int64_t begin, int64_t end);
};

// Returns the best kernels for this processor. TANDEM_CPU_ISA=avx512|avx2|baseline in the environment limits
// the choice.
const Kernels& BestKernels();

// Returns whether `isa` is a possible value of TANDEM_CPU_ISA, on any processor.
bool IsKnownIsa(const char* isa);

// For tests: returns all kernels for this processor, with null at the end.
const Kernels* const* AllKernels();

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_KERNELS_KERNELS_H_
