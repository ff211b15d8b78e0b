#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "engine/backend/algorithm_memory.h"
#include "engine/backends/cuda/driver/blas.h"
#include "engine/backends/cuda/driver/cublas_api.h"
#include "engine/backends/cuda/driver/measure.h"
#include "engine/backends/cuda/driver/plan_memory.h"
#include "engine/base/status_macros.h"

// cuBLASLt uses column-major order. Our C = A B is its C^T = B^T A^T in the same memory. So its first operand
// is our B and its second our A.

namespace tandem::cuda {
namespace {

cudaDataType ToCuda(DType type) {
  return type == DType::kBFloat16 ? CUDA_R_16BF : type == DType::kFloat16 ? CUDA_R_16F : CUDA_R_32F;
}

// cuBLASLt's descriptions of a product.
class Problem {
 public:
  explicit Problem(const CublasApi& api) : api_(api) {}
  ~Problem() {
    for (cublasLtMatrixLayout_t layout : {a, b, c}) {
      if (layout != nullptr) api_.layout_destroy(layout);
    }
    if (desc != nullptr) api_.desc_destroy(desc);
  }
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  absl::Status Describe(const GemmSpec& spec, bool allow_tf32) {
    const bool tf32 = allow_tf32 && spec.type == DType::kFloat32;
    TANDEM_CUBLAS(api_,
                  desc_create(&desc, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    TANDEM_RETURN_IF_ERROR(
        Set<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA, spec.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N));
    TANDEM_RETURN_IF_ERROR(
        Set<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB, spec.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N));
    const cublasLtEpilogue_t epilogue = spec.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    TANDEM_RETURN_IF_ERROR(Set<uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
    if (spec.bias) {
      TANDEM_RETURN_IF_ERROR(Set<int32_t>(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, ToCuda(spec.result_type)));
      // Until the first run, any aligned address.
      TANDEM_RETURN_IF_ERROR(SetBias(reinterpret_cast<const void*>(uintptr_t{256})));
    }
    const GemmPlaces places(spec);
    TANDEM_ASSIGN_OR_RETURN(
        a, Layout(spec.type, spec.transpose_b ? spec.k : spec.n, spec.transpose_b ? spec.n : spec.k,
                  places.row_b, spec.batch, places.stride_b));
    TANDEM_ASSIGN_OR_RETURN(
        b, Layout(spec.type, spec.transpose_a ? spec.m : spec.k, spec.transpose_a ? spec.k : spec.m,
                  places.row_a, spec.batch, places.stride_a));
    TANDEM_ASSIGN_OR_RETURN(
        c, Layout(spec.result_type, spec.n, spec.m, places.row_c, spec.batch, places.stride_c));
    return absl::OkStatus();
  }

  absl::Status SetBias(const void* bias) const {
    TANDEM_CUBLAS(api_, desc_set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)));
    return absl::OkStatus();
  }

  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a = nullptr;  // Our B.
  cublasLtMatrixLayout_t b = nullptr;  // Our A.
  cublasLtMatrixLayout_t c = nullptr;

 private:
  template <typename T>
  absl::Status Set(cublasLtMatmulDescAttributes_t attribute, T value) {
    TANDEM_CUBLAS(api_, desc_set(desc, attribute, &value, sizeof(value)));
    return absl::OkStatus();
  }

  absl::StatusOr<cublasLtMatrixLayout_t> Layout(DType type, int64_t rows, int64_t columns, int64_t leading,
                                                int64_t batch, int64_t stride) {
    cublasLtMatrixLayout_t layout = nullptr;
    TANDEM_CUBLAS(api_, layout_create(&layout, ToCuda(type), rows, columns, leading));
    if (batch != 1) {
      const auto count = static_cast<int32_t>(batch);
      cublasStatus_t status =
          api_.layout_set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count));
      if (status == CUBLAS_STATUS_SUCCESS) {
        status =
            api_.layout_set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride));
      }
      if (status != CUBLAS_STATUS_SUCCESS) {
        api_.layout_destroy(layout);
        return api_.Check(status, "cublasLtMatrixLayoutSetAttribute");
      }
    }
    return layout;
  }

  const CublasApi& api_;
};

// The library's handle. Products keep it alive.
struct BlasHandle {
  explicit BlasHandle(const CublasApi& api) : api(api) {}
  ~BlasHandle() {
    if (handle != nullptr) api.destroy(handle);
  }
  const CublasApi& api;
  cublasLtHandle_t handle = nullptr;
};

class LtGemm final : public Gemm {
 public:
  LtGemm(const GemmSpec& spec, std::shared_ptr<BlasHandle> handle)
      : spec_(spec), handle_(std::move(handle)), problem_(handle_->api) {}

  absl::Status Describe(bool allow_tf32) { return problem_.Describe(spec_, allow_tf32); }

  // Returns algorithms that need at most `cap` bytes, best guesses first.
  absl::StatusOr<std::vector<cublasLtMatmulHeuristicResult_t>> Offered(int64_t cap, bool deterministic,
                                                                       int count) const {
    const CublasApi& api = handle_->api;
    cublasLtMatmulPreference_t created = nullptr;
    TANDEM_CUBLAS(api, preference_create(&created));
    const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                          decltype(cublasLtMatmulPreferenceDestroy)*>
        preference(created, api.preference_destroy);
    const auto bytes = static_cast<uint64_t>(cap);
    TANDEM_CUBLAS(api, preference_set(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                      sizeof(bytes)));
    if (deterministic) {
      // Excludes algorithms that add in the result in order of arrival.
      const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
      TANDEM_CUBLAS(api, preference_set(preference.get(), CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                        &schemes, sizeof(schemes)));
    }
    std::vector<cublasLtMatmulHeuristicResult_t> results(count);
    int found = 0;
    TANDEM_CUBLAS(api, get_heuristic(handle_->handle, problem_.desc, problem_.a, problem_.b, problem_.c,
                                     problem_.c, preference.get(), count, results.data(), &found));
    results.resize(found);
    results.erase(std::remove_if(results.begin(), results.end(),
                                 [&](const cublasLtMatmulHeuristicResult_t& result) {
                                   return result.state != CUBLAS_STATUS_SUCCESS ||
                                          result.workspaceSize > bytes;
                                 }),
                  results.end());
    if (results.empty()) {
      return absl::UnimplementedError(absl::StrCat("cublasLt: no algorithm for ", spec_.ToString()));
    }
    return results;
  }

  void Use(const cublasLtMatmulAlgo_t& algorithm, size_t workspace_bytes) {
    has_algorithm_ = true;
    algorithm_ = algorithm;
    workspace_bytes_ = workspace_bytes;
  }

  // Returns whether the library still accepts this algorithm for the problem. If so, uses it.
  bool Reuse(const std::string& word, int64_t cap) {
    const std::string bytes = absl::HexStringToBytes(word);
    cublasLtMatmulAlgo_t algorithm;
    if (word.size() != 2 * sizeof(algorithm) || bytes.size() != sizeof(algorithm)) return false;
    std::memcpy(&algorithm, bytes.data(), sizeof(algorithm));
    cublasLtMatmulHeuristicResult_t result = {};
    if (handle_->api.check(handle_->handle, problem_.desc, problem_.a, problem_.b, problem_.c, problem_.c,
                           &algorithm, &result) != CUBLAS_STATUS_SUCCESS ||
        result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > static_cast<size_t>(cap)) {
      return false;
    }
    Use(algorithm, result.workspaceSize);
    return true;
  }

  bool has_algorithm() const { return has_algorithm_; }

  std::string Word() const {
    return absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(&algorithm_), sizeof(algorithm_)));
  }

  int64_t workspace_bytes() const override { return static_cast<int64_t>(workspace_bytes_); }

  absl::Status Run(const void* a, const void* b, void* c, const void* bias, void* workspace,
                   Stream stream) const override {
    if (spec_.bias) TANDEM_RETURN_IF_ERROR(problem_.SetBias(bias));
    const auto alpha = static_cast<float>(spec_.alpha);
    const auto beta = static_cast<float>(spec_.beta);
    const absl::Status status = handle_->api.Check(
        handle_->api.matmul(handle_->handle, problem_.desc, &alpha, b, problem_.a, a, problem_.b, &beta, c,
                            problem_.c, c, problem_.c, &algorithm_, workspace, workspace_bytes_, stream),
        "cublasLtMatmul");
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat(status.message(), " of ", spec_.ToString()));
  }

 private:
  const GemmSpec spec_;
  const std::shared_ptr<BlasHandle> handle_;
  Problem problem_;
  bool has_algorithm_ = false;
  cublasLtMatmulAlgo_t algorithm_ = {};
  size_t workspace_bytes_ = 0;
};

// Memory to measure a product with.
struct Operands {
  DeviceMemory a, b, c, bias, workspace;

  static absl::StatusOr<Operands> Allocate(const GemmSpec& spec, int64_t workspace_bytes,
                                           const LibraryOptions& options, Stream stream) {
    const GemmPlaces places(spec);
    const auto elements = [&](int64_t rows, int64_t row, int64_t stride) {
      return (spec.batch - 1) * stride + rows * row;
    };
    const int64_t a = elements(spec.transpose_a ? spec.k : spec.m, places.row_a, places.stride_a);
    const int64_t b = elements(spec.transpose_b ? spec.n : spec.k, places.row_b, places.stride_b);
    const int64_t c = elements(spec.m, places.row_c, places.stride_c);
    TANDEM_RETURN_IF_ERROR(CheckRoom(
        options, (a + b) * SizeOf(spec.type) + (c + spec.n) * SizeOf(spec.result_type) + workspace_bytes));
    Operands operands;
    TANDEM_ASSIGN_OR_RETURN(operands.a, RandomNumbers(spec.type, a, stream));
    TANDEM_ASSIGN_OR_RETURN(operands.b, RandomNumbers(spec.type, b, stream));
    TANDEM_ASSIGN_OR_RETURN(operands.c, RandomNumbers(spec.result_type, c, stream));
    TANDEM_ASSIGN_OR_RETURN(operands.bias, RandomNumbers(spec.result_type, spec.n, stream));
    TANDEM_ASSIGN_OR_RETURN(operands.workspace, DeviceMemory::Allocate(workspace_bytes));
    return operands;
  }
};

class LtBlas final : public Blas {
 public:
  static absl::StatusOr<std::unique_ptr<Blas>> Create(const LibraryOptions& options) {
    TANDEM_ASSIGN_OR_RETURN(const CublasApi* api, CublasApi::Load());
    auto handle = std::make_shared<BlasHandle>(*api);
    TANDEM_CUBLAS(*api, create(&handle->handle));
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<OwnedStream> stream, OwnedStream::Create());
    TANDEM_ASSIGN_OR_RETURN(const std::string gpu, NameOfGpu());
    return std::unique_ptr<Blas>(new LtBlas(options, std::move(handle), std::move(stream), gpu));
  }

  absl::StatusOr<std::unique_ptr<Gemm>> Plan(const GemmSpec& spec, int64_t workspace_cap) override {
    auto gemm = std::make_unique<LtGemm>(spec, handle_);
    TANDEM_RETURN_IF_ERROR(gemm->Describe(options_.allow_tf32));
    if (options_.deterministic) {
      TANDEM_ASSIGN_OR_RETURN(const auto offered, gemm->Offered(workspace_cap, true, 1));
      gemm->Use(offered[0].algo, offered[0].workspaceSize);
      return std::unique_ptr<Gemm>(std::move(gemm));
    }
    const std::string key =
        PlanKey("cublasLt", handle_->api.version(), gpu_, options_, spec.ToString(), workspace_cap);
    if (const auto known = chosen_.find(key); known != chosen_.end()) {
      if (gemm->Reuse(known->second, workspace_cap)) return std::unique_ptr<Gemm>(std::move(gemm));
    }
    absl::optional<absl::Status> searched;
    const auto measure = [&]() -> absl::optional<std::string> {
      searched = Search(spec, workspace_cap, *gemm);
      return searched->ok() ? absl::make_optional(gemm->Word()) : absl::nullopt;
    };
    const absl::optional<std::string> remembered = RememberedPlans().Choose(key, measure);
    // Without a file the product is measured here. With a file, another process may have measured it.
    if (!searched.has_value() && !(remembered.has_value() && gemm->Reuse(*remembered, workspace_cap))) {
      searched = Search(spec, workspace_cap, *gemm);
    }
    // Without room for measuring, the guess is used.
    const absl::Status found = searched.value_or(absl::OkStatus());
    if (!found.ok() && !(absl::IsResourceExhausted(found) && gemm->has_algorithm())) return found;
    chosen_[key] = gemm->Word();
    return std::unique_ptr<Gemm>(std::move(gemm));
  }

 private:
  LtBlas(const LibraryOptions& options, std::shared_ptr<BlasHandle> handle,
         std::unique_ptr<OwnedStream> stream, std::string gpu)
      : options_(options), handle_(std::move(handle)), stream_(std::move(stream)), gpu_(std::move(gpu)) {}

  // Makes `gemm` use the fastest of the promising algorithms. RESOURCE_EXHAUSTED without room for measuring:
  // then `gemm` keeps the best guess.
  absl::Status Search(const GemmSpec& spec, int64_t workspace_cap, LtGemm& gemm) {
    constexpr int kCandidates = 8;
    TANDEM_ASSIGN_OR_RETURN(const auto offered, gemm.Offered(workspace_cap, false, kCandidates));
    gemm.Use(offered[0].algo, offered[0].workspaceSize);
    if (offered.size() == 1) return absl::OkStatus();
    size_t workspace_bytes = 0;
    for (const auto& one : offered) workspace_bytes = std::max(workspace_bytes, one.workspaceSize);
    TANDEM_ASSIGN_OR_RETURN(
        const Operands operands,
        Operands::Allocate(spec, static_cast<int64_t>(workspace_bytes), options_, stream_->get()));
    TANDEM_RETURN_IF_ERROR(stream_->Synchronize());
    absl::Status failed;
    size_t best = offered.size();
    double best_seconds = 0;
    for (size_t i = 0; i < offered.size(); ++i) {
      gemm.Use(offered[i].algo, offered[i].workspaceSize);
      const absl::StatusOr<double> seconds = MeasureSeconds(*stream_, [&](Stream on) {
        return gemm.Run(operands.a.data(), operands.b.data(), operands.c.data(), operands.bias.data(),
                        operands.workspace.data(), on);
      });
      if (!seconds.ok()) {
        failed = seconds.status();
      } else if (best == offered.size() || *seconds < best_seconds) {
        best = i;
        best_seconds = *seconds;
      }
    }
    if (best == offered.size()) {
      gemm.Use(offered[0].algo, offered[0].workspaceSize);
      return failed;
    }
    gemm.Use(offered[best].algo, offered[best].workspaceSize);
    return absl::OkStatus();
  }

  const LibraryOptions options_;
  const std::shared_ptr<BlasHandle> handle_;
  const std::unique_ptr<OwnedStream> stream_;
  const std::string gpu_;
  std::map<std::string, std::string> chosen_;  // By problem.
};

}  // namespace

absl::StatusOr<std::unique_ptr<Blas>> CreateBlas(const LibraryOptions& options) {
  return LtBlas::Create(options);
}

}  // namespace tandem::cuda
