#include "engine/backends/cuda/driver/cudnn_older.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

class OlderConvolution final : public Convolution {
 public:
  OlderConvolution(std::shared_ptr<CudnnHandle> handle, const ConvolutionSpec& spec)
      : handle_(std::move(handle)), spec_(spec) {}
  ~OlderConvolution() override {
    const CudnnApi& api = handle_->api;
    if (x_ != nullptr) api.destroy_tensor(x_);
    if (y_ != nullptr) api.destroy_tensor(y_);
    if (weight_ != nullptr) api.destroy_filter(weight_);
    if (convolution_ != nullptr) api.destroy_convolution(convolution_);
  }

  absl::Status Describe(bool allow_tf32) {
    const CudnnApi& api = handle_->api;
    const ConvolutionSpec& s = spec_;
    const cudnnDataType_t type = ToCudnn(s.type);
    const auto tensor = [&](cudnnTensorDescriptor_t* made, int64_t c, int64_t h, int64_t w) {
      TANDEM_CUDNN(api, create_tensor(made));
      TANDEM_CUDNN(api, set_tensor(*made, type, Int(s.n), Int(c), Int(h), Int(w), Int(h * w * c), 1,
                                   Int(w * c), Int(c)));
      return absl::OkStatus();
    };
    TANDEM_RETURN_IF_ERROR(tensor(&x_, s.c, s.h, s.w));
    TANDEM_RETURN_IF_ERROR(tensor(&y_, s.k, s.out_h, s.out_w));
    TANDEM_CUDNN(api, create_filter(&weight_));
    TANDEM_CUDNN(api, set_filter(weight_, type, CUDNN_TENSOR_NHWC, Int(s.k), Int(s.c / s.groups),
                                 Int(s.kernel_h), Int(s.kernel_w)));
    TANDEM_CUDNN(api, create_convolution(&convolution_));
    TANDEM_CUDNN(api, set_convolution(convolution_, Int(s.pad_h), Int(s.pad_w), Int(s.stride_h),
                                      Int(s.stride_w), Int(s.dilation_h), Int(s.dilation_w),
                                      CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    TANDEM_CUDNN(api, set_groups(convolution_, Int(s.groups)));
    math_ = s.type == DType::kFloat32 && !allow_tf32 ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
    TANDEM_CUDNN(api, set_math(convolution_, math_));
    return absl::OkStatus();
  }

  absl::Status Choose(bool deterministic, int64_t cap) {
    const CudnnApi& api = handle_->api;
    const cudnnHandle_t handle = handle_->handle;
    int count = 0;
    switch (spec_.kind) {
      case ConvolutionKind::kForward: {
        std::array<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> offered;
        TANDEM_CUDNN(api, forward_algorithms(handle, x_, weight_, convolution_, y_,
                                             static_cast<int>(offered.size()), &count, offered.data()));
        return Take(offered, count, deterministic, cap);
      }
      case ConvolutionKind::kGradInput: {
        std::array<cudnnConvolutionBwdDataAlgoPerf_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT> offered;
        TANDEM_CUDNN(api, grad_input_algorithms(handle, weight_, y_, convolution_, x_,
                                                static_cast<int>(offered.size()), &count, offered.data()));
        return Take(offered, count, deterministic, cap);
      }
      case ConvolutionKind::kGradWeight: {
        std::array<cudnnConvolutionBwdFilterAlgoPerf_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT> offered;
        TANDEM_CUDNN(api, grad_weight_algorithms(handle, x_, y_, convolution_, weight_,
                                                 static_cast<int>(offered.size()), &count, offered.data()));
        return Take(offered, count, deterministic, cap);
      }
    }
    return absl::InternalError("cudnn: a convolution of no kind");
  }

  int64_t workspace_bytes() const override { return static_cast<int64_t>(workspace_bytes_); }
  bool adds_bias() const override { return false; }
  bool takes_relu() const override { return false; }
  std::string algorithm() const override { return absl::StrCat("older algorithm ", algorithm_); }

  absl::Status Run(void* x, void* weight, void* y, const void* /*bias*/, void* workspace,
                   Stream stream) const override {
    const CudnnApi& api = handle_->api;
    const cudnnHandle_t handle = handle_->handle;
    const float one = 1;
    const float zero = 0;
    TANDEM_CUDNN(api, set_stream(handle, stream));
    switch (spec_.kind) {
      case ConvolutionKind::kForward:
        TANDEM_CUDNN(api, forward(handle, &one, x_, x, weight_, weight, convolution_,
                                  static_cast<cudnnConvolutionFwdAlgo_t>(algorithm_), workspace,
                                  workspace_bytes_, &zero, y_, y));
        break;
      case ConvolutionKind::kGradInput:
        TANDEM_CUDNN(api, grad_input(handle, &one, weight_, weight, y_, y, convolution_,
                                     static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm_), workspace,
                                     workspace_bytes_, &zero, x_, x));
        break;
      case ConvolutionKind::kGradWeight:
        TANDEM_CUDNN(api, grad_weight(handle, &one, x_, x, y_, y, convolution_,
                                      static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm_), workspace,
                                      workspace_bytes_, &zero, weight_, weight));
        break;
    }
    return absl::OkStatus();
  }

 private:
  static int Int(int64_t number) { return static_cast<int>(number); }

  // Returns the first suitable algorithm. They are sorted by their expected time.
  template <typename Offered>
  absl::Status Take(const Offered& offered, int count, bool deterministic, int64_t cap) {
    for (int i = 0; i < count; ++i) {
      const auto& one = offered[i];
      if (one.status != CUDNN_STATUS_SUCCESS || one.memory > static_cast<size_t>(cap)) continue;
      if (deterministic && one.determinism != CUDNN_DETERMINISTIC) continue;
      if (math_ == CUDNN_FMA_MATH && one.mathType != CUDNN_FMA_MATH && one.mathType != CUDNN_DEFAULT_MATH) {
        continue;
      }
      const cudnnMathType_t math = math_ == CUDNN_FMA_MATH ? CUDNN_FMA_MATH : one.mathType;
      TANDEM_CUDNN(handle_->api, set_math(convolution_, math));
      algorithm_ = static_cast<int>(one.algo);
      workspace_bytes_ = one.memory;
      return absl::OkStatus();
    }
    return absl::UnimplementedError(
        absl::StrCat("cudnn: of ", count, " algorithms none does ", spec_.ToString(), " in ", cap, " bytes"));
  }

  const std::shared_ptr<CudnnHandle> handle_;
  const ConvolutionSpec spec_;
  cudnnTensorDescriptor_t x_ = nullptr;
  cudnnTensorDescriptor_t y_ = nullptr;
  cudnnFilterDescriptor_t weight_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  cudnnMathType_t math_ = CUDNN_DEFAULT_MATH;
  int algorithm_ = 0;
  size_t workspace_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Convolution>> PlanOlderConvolution(std::shared_ptr<CudnnHandle> handle,
                                                                  const ConvolutionSpec& spec,
                                                                  const LibraryOptions& options,
                                                                  int64_t workspace_cap) {
  auto convolution = std::make_unique<OlderConvolution>(std::move(handle), spec);
  TANDEM_RETURN_IF_ERROR(convolution->Describe(options.allow_tf32));
  TANDEM_RETURN_IF_ERROR(convolution->Choose(options.deterministic, workspace_cap));
  return std::unique_ptr<Convolution>(std::move(convolution));
}

}  // namespace tandem::cuda
