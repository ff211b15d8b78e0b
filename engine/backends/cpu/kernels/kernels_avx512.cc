#define TANDEM_KERNELS_NAME kAvx512Kernels
#define TANDEM_KERNELS_ISA "avx512"

#include "engine/backends/cpu/kernels/vector.inc"
// Each file uses those before it. The table uses all.
// clang-format off
#include "engine/backends/cpu/kernels/pooling.inc"
#include "engine/backends/cpu/kernels/channels.inc"
#include "engine/backends/cpu/kernels/channels_tiled.inc"
#include "engine/backends/cpu/kernels/convolution.inc"
#include "engine/backends/cpu/kernels/elementwise.inc"
#include "engine/backends/cpu/kernels/linear.inc"
#include "engine/backends/cpu/kernels/attention.inc"
#include "engine/backends/cpu/kernels/activation.inc"
#include "engine/backends/cpu/kernels/lstm.inc"
#include "engine/backends/cpu/kernels/optimizers.inc"
#include "engine/backends/cpu/kernels/winograd.inc"
#include "engine/backends/cpu/kernels/winograd_grad_weight.inc"
#include "engine/backends/cpu/kernels/table.inc"
// clang-format on
