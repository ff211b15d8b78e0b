#include "engine/backends/cuda/driver/cublas_api.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/driver/library.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

absl::StatusOr<const CublasApi*> LoadOnce() {
  TANDEM_ASSIGN_OR_RETURN(const Library library,
                          Library::Open("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"}));
  auto api = std::make_unique<CublasApi>();
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtCreate", &api->create));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtDestroy", &api->destroy));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtGetStatusString", &api->status_string));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtGetVersion", &api->version));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtMatmul", &api->matmul));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtMatmulDescCreate", &api->desc_create));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtMatmulDescDestroy", &api->desc_destroy));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtMatmulDescSetAttribute", &api->desc_set));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtMatrixLayoutCreate", &api->layout_create));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtMatrixLayoutDestroy", &api->layout_destroy));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtMatrixLayoutSetAttribute", &api->layout_set));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtMatmulPreferenceCreate", &api->preference_create));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtMatmulPreferenceDestroy", &api->preference_destroy));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtMatmulPreferenceSetAttribute", &api->preference_set));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtMatmulAlgoGetHeuristic", &api->get_heuristic));
  TANDEM_RETURN_IF_ERROR(library.Find("cublasLtMatmulAlgoCheck", &api->check));
  return api.release();
}

}  // namespace

absl::StatusOr<const CublasApi*> CublasApi::Load() {
  static const absl::StatusOr<const CublasApi*>& loaded = *new absl::StatusOr<const CublasApi*>(LoadOnce());
  return loaded;
}

absl::Status CublasApi::Check(cublasStatus_t status, absl::string_view call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message = absl::StrCat("cublasLt: ", call, ": ", status_string(status));
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return absl::UnimplementedError(message);
  if (status == CUBLAS_STATUS_ALLOC_FAILED) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

}  // namespace tandem::cuda
