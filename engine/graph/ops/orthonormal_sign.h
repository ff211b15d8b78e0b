#ifndef TANDEM_ENGINE_GRAPH_OPS_ORTHONORMAL_SIGN_H_
#define TANDEM_ENGINE_GRAPH_OPS_ORTHONORMAL_SIGN_H_

#include <cstdint>

// Backends on the host and kernels on GPUs share this function.
#ifdef __CUDACC__
#define TANDEM_HOST_AND_DEVICE __host__ __device__
#else
#define TANDEM_HOST_AND_DEVICE
#endif

namespace tandem {

// Returns an element, 1 or -1, of the column that OrthonormalizeOp takes in place of a dependent column. The
// signs look random: the 32-bit finaliser of MurmurHash3 mixes the element's place.
TANDEM_HOST_AND_DEVICE inline double OrthonormalSign(int64_t row, int64_t column) {
  uint32_t bits = static_cast<uint32_t>(row) * 0x9E3779B1u + static_cast<uint32_t>(column) * 0x85EBCA77u + 1;
  bits = (bits ^ (bits >> 16)) * 0x85EBCA6Bu;
  bits = (bits ^ (bits >> 13)) * 0xC2B2AE35u;
  return ((bits ^ (bits >> 16)) & 1u) != 0 ? 1 : -1;
}

}  // namespace tandem

#undef TANDEM_HOST_AND_DEVICE

#endif  // TANDEM_ENGINE_GRAPH_OPS_ORTHONORMAL_SIGN_H_
