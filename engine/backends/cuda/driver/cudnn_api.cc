#include "engine/backends/cuda/driver/cudnn_api.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/driver/library.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

absl::StatusOr<const CudnnApi*> LoadOnce() {
  // cuDNN loads this library for some of its algorithms. It finds the library that is loaded here.
  (void)Library::Open("NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12"});
  (void)Library::Open("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"});
  TANDEM_ASSIGN_OR_RETURN(const Library library, Library::Open("cuDNN", {"libcudnn.so.9"}));
  auto api = std::make_unique<CudnnApi>();
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnGetVersion", &api->get_version));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnGetErrorString", &api->get_error_string));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnGetLastErrorString", &api->get_last_error_string));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnCreate", &api->create));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnDestroy", &api->destroy));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnSetStream", &api->set_stream));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnBackendCreateDescriptor", &api->create_descriptor));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnBackendDestroyDescriptor", &api->destroy_descriptor));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnBackendFinalize", &api->finalize));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnBackendSetAttribute", &api->set_attribute));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnBackendGetAttribute", &api->get_attribute));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnBackendExecute", &api->execute));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnCreateTensorDescriptor", &api->create_tensor));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnDestroyTensorDescriptor", &api->destroy_tensor));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnSetTensor4dDescriptorEx", &api->set_tensor));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnCreateFilterDescriptor", &api->create_filter));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnDestroyFilterDescriptor", &api->destroy_filter));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnSetFilter4dDescriptor", &api->set_filter));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnCreateConvolutionDescriptor", &api->create_convolution));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnDestroyConvolutionDescriptor", &api->destroy_convolution));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnSetConvolution2dDescriptor", &api->set_convolution));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnSetConvolutionGroupCount", &api->set_groups));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnSetConvolutionMathType", &api->set_math));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnGetConvolutionForwardAlgorithm_v7", &api->forward_algorithms));
  TANDEM_RETURN_IF_ERROR(
      library.Find("cudnnGetConvolutionBackwardDataAlgorithm_v7", &api->grad_input_algorithms));
  TANDEM_RETURN_IF_ERROR(
      library.Find("cudnnGetConvolutionBackwardFilterAlgorithm_v7", &api->grad_weight_algorithms));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnConvolutionForward", &api->forward));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnConvolutionBackwardData", &api->grad_input));
  TANDEM_RETURN_IF_ERROR(library.Find("cudnnConvolutionBackwardFilter", &api->grad_weight));
  return api.release();
}

}  // namespace

absl::StatusOr<const CudnnApi*> CudnnApi::Load() {
  static const absl::StatusOr<const CudnnApi*>& loaded = *new absl::StatusOr<const CudnnApi*>(LoadOnce());
  return loaded;
}

absl::Status CudnnApi::Check(cudnnStatus_t status, absl::string_view call) const {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  char details[1024] = "";
  get_last_error_string(details, sizeof(details));
  const std::string message =
      absl::StrCat("cudnn: ", call, ": ", get_error_string(status), details[0] == 0 ? "" : ": ", details);
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    return absl::ResourceExhaustedError(message);
  }
  return CUDNN_STATUS_CATEGORY(static_cast<int>(status)) == CUDNN_STATUS_NOT_SUPPORTED
             ? absl::UnimplementedError(message)
             : absl::InternalError(message);
}

}  // namespace tandem::cuda
