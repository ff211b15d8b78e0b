#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDNN_API_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDNN_API_H_

#include <cudnn.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// The functions of cuDNN that the backend uses. The library is loaded on demand.
struct CudnnApi {
  decltype(cudnnGetVersion)* get_version;
  decltype(cudnnGetErrorString)* get_error_string;
  decltype(cudnnGetLastErrorString)* get_last_error_string;
  decltype(cudnnCreate)* create;
  decltype(cudnnDestroy)* destroy;
  decltype(cudnnSetStream)* set_stream;
  // The graph API.
  decltype(cudnnBackendCreateDescriptor)* create_descriptor;
  decltype(cudnnBackendDestroyDescriptor)* destroy_descriptor;
  decltype(cudnnBackendFinalize)* finalize;
  decltype(cudnnBackendSetAttribute)* set_attribute;
  decltype(cudnnBackendGetAttribute)* get_attribute;
  decltype(cudnnBackendExecute)* execute;
  // The older API.
  decltype(cudnnCreateTensorDescriptor)* create_tensor;
  decltype(cudnnDestroyTensorDescriptor)* destroy_tensor;
  decltype(cudnnSetTensor4dDescriptorEx)* set_tensor;
  decltype(cudnnCreateFilterDescriptor)* create_filter;
  decltype(cudnnDestroyFilterDescriptor)* destroy_filter;
  decltype(cudnnSetFilter4dDescriptor)* set_filter;
  decltype(cudnnCreateConvolutionDescriptor)* create_convolution;
  decltype(cudnnDestroyConvolutionDescriptor)* destroy_convolution;
  decltype(cudnnSetConvolution2dDescriptor)* set_convolution;
  decltype(cudnnSetConvolutionGroupCount)* set_groups;
  decltype(cudnnSetConvolutionMathType)* set_math;
  decltype(cudnnGetConvolutionForwardAlgorithm_v7)* forward_algorithms;
  decltype(cudnnGetConvolutionBackwardDataAlgorithm_v7)* grad_input_algorithms;
  decltype(cudnnGetConvolutionBackwardFilterAlgorithm_v7)* grad_weight_algorithms;
  decltype(cudnnConvolutionForward)* forward;
  decltype(cudnnConvolutionBackwardData)* grad_input;
  decltype(cudnnConvolutionBackwardFilter)* grad_weight;

  // Loads the library once. UNAVAILABLE if it is not found.
  static absl::StatusOr<const CudnnApi*> Load();

  // Turns a cuDNN status into a status. UNIMPLEMENTED if the library does not support a call.
  absl::Status Check(cudnnStatus_t status, absl::string_view call) const;
};

// Calls a function of the api. Returns from the calling function if it fails.
#define TANDEM_CUDNN(api, call) TANDEM_RETURN_IF_ERROR((api).Check((api).call, #call))

// A handle of the library. Plans keep it alive.
struct CudnnHandle {
  explicit CudnnHandle(const CudnnApi& api) : api(api) {}
  ~CudnnHandle() {
    if (handle != nullptr) api.destroy(handle);
  }
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  const CudnnApi& api;
  cudnnHandle_t handle = nullptr;
};

inline cudnnDataType_t ToCudnn(DType type) {
  return type == DType::kBFloat16  ? CUDNN_DATA_BFLOAT16
         : type == DType::kFloat16 ? CUDNN_DATA_HALF
                                   : CUDNN_DATA_FLOAT;
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDNN_API_H_
