#ifndef TANDEM_ENGINE_BACKENDS_CUDA_CUDA_DEVICE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/backend/device.h"
#include "engine/backends/cuda/device_context.h"

namespace tandem {

// An NVIDIA GPU. It uses cuDNN's convolutions, cuBLASLt's products and own kernels, on a single stream. From
// the second run of an executable on, the stream gets a whole run at once, as a CUDA graph. Images have
// channels last. Computes in float32. Alternatively, values between layers and factors of products are
// bfloat16 or float16, with sums in float32. Variables are float32. TANDEM_CUDA_GRAPHS=0 in the environment
// launches kernels one by one, for debuggers.
class CudaDevice final : public Device {
 public:
  // Opens the process's GPU `ordinal`. UNAVAILABLE if there is no such GPU, no driver, or a library is
  // missing. FAILED_PRECONDITION if its compute capability is below 8.0.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Open(std::string name, int ordinal,
                                                          const cuda::CudaOptions& options = {});

  // Returns a device over a complete context, for tests with their own libraries.
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
