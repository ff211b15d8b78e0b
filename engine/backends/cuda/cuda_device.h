#ifndef TANDEM_ENGINE_BACKENDS_CUDA_CUDA_DEVICE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/backend/device.h"
#include "engine/backends/cuda/device_context.h"

namespace tandem {

// A GPU of NVIDIA's: cuDNN's convolutions and cuBLASLt's products, own kernels for all else, on one stream,
// which from the second run of an executable on is given a whole run at once, as a CUDA graph. Images lie
// channels last. Computes in float32, or what passes between layers and goes into products in bfloat16 or
// float16 with sums in float32; variables are float32.
// TANDEM_CUDA_GRAPHS=0 in the environment gives kernels one by one, for debuggers.
class CudaDevice final : public Device {
 public:
  // The process's GPU `ordinal`. UNAVAILABLE where there is none, no driver, or a library is not found;
  // FAILED_PRECONDITION where it is older than compute capability 8.0.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Open(std::string name, int ordinal,
                                                          const cuda::CudaOptions& options = {});

  // Over a context that is complete, for tests with libraries of their own.
  static std::unique_ptr<CudaDevice> Over(std::string name, std::shared_ptr<cuda::DeviceContext> context) {
    return std::unique_ptr<CudaDevice>(new CudaDevice(std::move(name), std::move(context)));
  }

  const std::string& name() const override { return name_; }
  DType dtype() const override { return DType::kFloat32; }
  std::unique_ptr<Variables> CreateVariables(const Variables* like = nullptr) override;
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph, Variables* variables) override;
  absl::Status Wait() override;
  std::unique_ptr<Communicator> WrapCommunicator(Communicator* host) override;

 private:
  CudaDevice(std::string name, std::shared_ptr<cuda::DeviceContext> context)
      : name_(std::move(name)), context_(std::move(context)) {}

  const std::string name_;
  const std::shared_ptr<cuda::DeviceContext> context_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_CUDA_DEVICE_H_
