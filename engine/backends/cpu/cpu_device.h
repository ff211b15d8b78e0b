#ifndef TANDEM_ENGINE_BACKENDS_CPU_CPU_DEVICE_H_
#define TANDEM_ENGINE_BACKENDS_CPU_CPU_DEVICE_H_

#include <memory>
#include <string>

#include "engine/backend/device.h"
#include "engine/backends/cpu/team.h"

namespace tandem {

// Cores of the host. oneDNN computes large convolutions and dense layers. Own loops compute layers with few
// channels, all small ops and the update. Computes in float32, or large ops in bfloat16 with sums in float32.
// Variables are float32. Denormal numbers are flushed to zero. Only oneDNN's reductions depend on the number
// of threads. Two runs with the same number are equal bit for bit.
class CpuDevice final : public Device {
 public:
  // `threads`, at least 1, is the size of the OpenMP team of the calling thread. If processes share cores,
  // the process must have started with OMP_WAIT_POLICY=passive in its environment. `compute` is float32, or
  // bfloat16 if the processor offers it.
  CpuDevice(std::string name, int threads, DType compute = DType::kFloat32);

  // Returns whether this processor has instructions for bfloat16 (AVX512_BF16), which make it faster than
  // float32.
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
