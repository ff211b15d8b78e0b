#define TANDEM_KERNELS_NAME kAvx2Kernels
#define TANDEM_KERNELS_ISA "avx2"

#include "engine/backends/cpu/kernels/vector.inc"
// The order matters: each uses those before it.
#include "engine/backends/cpu/kernels/convolution.inc"
#include "engine/backends/cpu/kernels/elementwise.inc"
#include "engine/backends/cpu/kernels/linear.inc"
#include "engine/backends/cpu/kernels/pooling.inc"
#include "engine/backends/cpu/kernels/table.inc"
