#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUBLAS_API_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUBLAS_API_H_

#include <cublasLt.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::cuda {

// The functions of cuBLASLt that the backend uses. The library is loaded on demand.
struct CublasApi {
  decltype(cublasLtCreate)* create;
  decltype(cublasLtDestroy)* destroy;
  decltype(cublasLtGetStatusString)* status_string;
  decltype(cublasLtGetVersion)* version;
  decltype(cublasLtMatmul)* matmul;
  decltype(cublasLtMatmulDescCreate)* desc_create;
  decltype(cublasLtMatmulDescDestroy)* desc_destroy;
  decltype(cublasLtMatmulDescSetAttribute)* desc_set;
  decltype(cublasLtMatrixLayoutCreate)* layout_create;
  decltype(cublasLtMatrixLayoutDestroy)* layout_destroy;
  decltype(cublasLtMatrixLayoutSetAttribute)* layout_set;
  decltype(cublasLtMatmulPreferenceCreate)* preference_create;
  decltype(cublasLtMatmulPreferenceDestroy)* preference_destroy;
  decltype(cublasLtMatmulPreferenceSetAttribute)* preference_set;
  decltype(cublasLtMatmulAlgoGetHeuristic)* get_heuristic;
  decltype(cublasLtMatmulAlgoCheck)* check;

  // Loads the library once. UNAVAILABLE if it is not found.
  static absl::StatusOr<const CublasApi*> Load();

  // Turns a cuBLASLt status into a status. UNIMPLEMENTED if the library does not support a call,
  // RESOURCE_EXHAUSTED if it got no memory.
  absl::Status Check(cublasStatus_t status, absl::string_view call) const;
};

// Calls a function of the api. Returns from the calling function if it fails.
#define TANDEM_CUBLAS(api, call) TANDEM_RETURN_IF_ERROR((api).Check((api).call, #call))

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUBLAS_API_H_
