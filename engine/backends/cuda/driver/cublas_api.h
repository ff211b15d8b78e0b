#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUBLAS_API_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUBLAS_API_H_

#include <cublasLt.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::cuda {

// What is used of cuBLASLt, which is loaded when it is needed.
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

  // Loads it, once; UNAVAILABLE where it is not found.
  static absl::StatusOr<const CublasApi*> Load();

  // UNIMPLEMENTED where the library says that it does not support something, RESOURCE_EXHAUSTED where it got
  // no memory.
  absl::Status Check(cublasStatus_t status, absl::string_view call) const;
};

// Calls one of the api's functions and returns from the function where it fails.
#define TANDEM_CUBLAS(api, call) TANDEM_RETURN_IF_ERROR((api).Check((api).call, #call))

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUBLAS_API_H_
