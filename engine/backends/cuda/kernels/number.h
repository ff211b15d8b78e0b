#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_NUMBER_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_NUMBER_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/half.h"

namespace tandem::cuda {

// bfloat16 and float16 as in memory, on device and host. Arithmetic uses float. ToFloat is exact. To rounds
// to nearest, ties to even. Numbers that are too large for float16 become infinite.
struct Bf16 {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};

__host__ __device__ __forceinline__ float ToFloat(float x) { return x; }
__host__ __device__ __forceinline__ float ToFloat(Bf16 x) {
  const uint32_t wide = static_cast<uint32_t>(x.bits) << 16;
#ifdef __CUDA_ARCH__
  return __uint_as_float(wide);
#else
  float value;
  memcpy(&value, &wide, sizeof(value));
  return value;
#endif
}

__host__ __device__ __forceinline__ float ToFloat(Half x) {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
#else
  Float16 number;
  number.bits = x.bits;
  return static_cast<float>(number);
#endif
}

// To<T>(float) returns the number in type T.
template <typename T>
__host__ __device__ __forceinline__ T To(float x) {
  return static_cast<T>(x);
}
template <>
__host__ __device__ __forceinline__ Bf16 To<Bf16>(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return {bits};
#else
  uint32_t wide;
  memcpy(&wide, &x, sizeof(wide));
  if (x != x) return {static_cast<uint16_t>(wide >> 16 | 0x40)};
  return {static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16)};
#endif
}

template <>
__host__ __device__ __forceinline__ Half To<Half>(float x) {
#ifdef __CUDA_ARCH__
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return {bits};
#else
  return {Float16(x).bits};
#endif
}

// Calls `function(T())` with T float, Bf16 or Half for `dtype`, one of these three.
template <typename Function>
void WithNumber(DType dtype, const Function& function) {
  if (dtype == DType::kBFloat16) {
    function(Bf16());
  } else if (dtype == DType::kFloat16) {
    function(Half());
  } else {
    function(float());
  }
}

// kCount elements, loaded and stored at once if they are aligned.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T items[kCount];
};

// Stores a pack of 8 or 16 bytes with a single instruction. nvcc may split a plain assignment into stores of
// 4 bytes.
template <typename T, int kCount>
__device__ __forceinline__ void Store(const Pack<T, kCount>& pack, Pack<T, kCount>* place) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(pack) == sizeof(uint4) || sizeof(pack) == sizeof(uint2)) {
    using Bits = std::conditional_t<sizeof(pack) == sizeof(uint4), uint4, uint2>;
    Bits bits;
    memcpy(&bits, &pack, sizeof(bits));
    __stwb(reinterpret_cast<Bits*>(place), bits);
  } else {
    *place = pack;
  }
#else
  *place = pack;
#endif
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_NUMBER_H_
