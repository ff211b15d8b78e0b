#ifndef TANDEM_ENGINE_BACKENDS_CPU_CPU_DEVICE_H_
#define TANDEM_ENGINE_BACKENDS_CPU_CPU_DEVICE_H_

#include <memory>
#include <string>

#include "engine/backend/device.h"
#include "engine/backends/cpu/team.h"

namespace tandem {

// Cores of the host: oneDNN's convolutions and dense layers, and own loops for whatever has few channels, for
// all else that is small, and for the update. Computes in float32, or what is large in bfloat16 with sums in
// float32; variables are float32. Denormal numbers are flushed to zero.
// Results depend on the number of threads in nothing but oneDNN's reductions, and two runs with as many are
// equal bit for bit.
class CpuDevice final : public Device {
 public:
  // `threads`, at least 1, is the size of the OpenMP team that a calling thread gets. The process must have
  // started with OMP_WAIT_POLICY=passive in its environment where cores are shared.
  // `compute` is float32, or bfloat16 where the processor offers it.
  CpuDevice(std::string name, int threads, DType compute = DType::kFloat32);

  // Whether this processor has instructions for bfloat16 (AVX512_BF16), which make it faster than float32.
  static bool OffersBFloat16();

  const std::string& name() const override { return name_; }
  DType dtype() const override { return DType::kFloat32; }
  std::unique_ptr<Variables> CreateVariables(const Variables* like = nullptr) override;
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph, Variables* variables) override;

 private:
  const std::string name_;
  const cpu::Team team_;
  const DType compute_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKENDS_CPU_CPU_DEVICE_H_
