#include "engine/backends/cuda/cuda_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/cuda_executable.h"
#include "engine/backends/cuda/cuda_variables.h"
#include "engine/backends/cuda/device_communicator.h"
#include "engine/backends/cuda/kernels/launch_limits.h"
#include "engine/backends/cuda/lowering.h"
#include "engine/base/status_macros.h"

namespace tandem {

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Open(std::string name, int ordinal,
                                                             const cuda::CudaOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const int count, cuda::CountDevices());
  if (ordinal < 0 || ordinal >= count) {
    return absl::UnavailableError(
        absl::StrCat(name, ": CUDA sees ", count, count == 1 ? " GPU" : " GPUs",
                     " in this process, counted from 0; CUDA_VISIBLE_DEVICES may hide others"));
  }
  auto context = std::make_shared<cuda::DeviceContext>(options);
  context->ordinal = ordinal;
  TANDEM_ASSIGN_OR_RETURN(context->properties, cuda::GetProperties(ordinal));
  if (context->properties.major < 8) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": ", context->properties.name, " has compute capability ",
                     context->properties.major, ".", context->properties.minor, "; 8.0 or newer is needed"));
  }
  cuda::LaunchLimits limits;
  if (options.max_threads_per_block > 0) limits.threads = options.max_threads_per_block;
  if (options.max_blocks > 0) limits.blocks = static_cast<uint64_t>(options.max_blocks);
  cuda::SetLaunchLimits(limits);
  TANDEM_RETURN_IF_ERROR(cuda::UseDevice(ordinal));
  TANDEM_ASSIGN_OR_RETURN(context->stream, cuda::OwnedStream::Create());
  const cuda::LibraryOptions libraries = {.allow_tf32 = options.allow_tf32,
                                          .deterministic = options.deterministic,
                                          .room = [memory = &context->memory] { return memory->room(); }};
  TANDEM_ASSIGN_OR_RETURN(context->blas, cuda::CreateBlas(libraries));
  TANDEM_ASSIGN_OR_RETURN(context->dnn, cuda::CreateDnn(libraries));
  return Over(std::move(name), std::move(context));
}

absl::Status CudaDevice::Wait() {
  TANDEM_RETURN_IF_ERROR(cuda::UseDevice(context_->ordinal));
  return context_->stream->Synchronize();
}

std::unique_ptr<Communicator> CudaDevice::WrapCommunicator(Communicator* host) {
  return std::make_unique<cuda::DeviceCommunicator>(context_, host);
}

std::unique_ptr<Variables> CudaDevice::CreateVariables(const Variables* like) {
  return std::make_unique<cuda::CudaVariables>(context_, like);
}

absl::StatusOr<std::unique_ptr<Executable>> CudaDevice::Compile(const Graph& graph, Variables* variables) {
  TANDEM_RETURN_IF_ERROR(cuda::UseDevice(context_->ordinal));
  auto* cuda_variables = static_cast<cuda::CudaVariables*>(variables);
  TANDEM_RETURN_IF_ERROR(CheckOffered(graph, cuda::CudaBackend::kName, cuda::FindLower));
  TANDEM_RETURN_IF_ERROR(cuda_variables->Declare(graph));
  cuda::Lowering lowering(graph, cuda_variables, context_.get());
  TANDEM_RETURN_IF_ERROR(lowering.LowerGraph());
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<cuda::CudaExecutable> executable,
                          cuda::CudaExecutable::Create(lowering, context_));
  return std::unique_ptr<Executable>(std::move(executable));
}

}  // namespace tandem
