#include "engine/graph/ops/muon.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "engine/backends/cuda/kernels/muon.h"
#include "engine/backends/cuda/offered.h"
#include "engine/backends/cuda/tensor_changes.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

constexpr int64_t kMuonWorkspaceCap = int64_t{32} << 20;

// The Newton-Schulz iterations of a matrix. If rows > columns they iterate on the transpose: X (b A + c A A)
// with A = X^T X.
class NewtonSchulz {
 public:
  NewtonSchulz(const MuonSettings& settings, int64_t rows, int64_t columns)
      : settings_(settings),
        tall_(rows > columns),
        elements_(rows * columns),
        square_(std::min(rows, columns) * std::min(rows, columns)) {}

  absl::Status Plan(Blas& blas, int64_t rows, int64_t columns) {
    const std::array<double, 3>& coefficients = settings_.coefficients;
    const int64_t small = std::min(rows, columns);
    TANDEM_ASSIGN_OR_RETURN(gram_, blas.Plan({.m = small,
                                              .n = small,
                                              .k = std::max(rows, columns),
                                              .transpose_a = tall_,
                                              .transpose_b = !tall_},
                                             kMuonWorkspaceCap));
    TANDEM_ASSIGN_OR_RETURN(
        mix_,
        blas.Plan({.m = small, .n = small, .k = small, .alpha = coefficients[2], .beta = coefficients[1]},
                  kMuonWorkspaceCap));
    TANDEM_ASSIGN_OR_RETURN(
        apply_, blas.Plan({.m = rows, .n = columns, .k = small, .beta = coefficients[0]}, kMuonWorkspaceCap));
    return absl::OkStatus();
  }
  int64_t workspace_bytes() const {
    return std::max({gram_->workspace_bytes(), mix_->workspace_bytes(), apply_->workspace_bytes()});
  }
  int64_t matrix_bytes() const { return elements_ * static_cast<int64_t>(sizeof(float)); }
  int64_t square_bytes() const { return square_ * static_cast<int64_t>(sizeof(float)); }

  // Returns the place of the result: `x` or `next`. `gram` and `mixed` are memory of square_bytes.
  absl::StatusOr<const float*> Run(float* x, float* next, float* gram, float* mixed, void* workspace,
                                   Stream stream) const {
    for (int step = 0; step < settings_.steps; ++step) {
      TANDEM_RETURN_IF_ERROR(gram_->Run(x, x, gram, nullptr, workspace, stream));
      TANDEM_RETURN_IF_ERROR(Copy(mixed, gram, square_bytes(), stream));
      TANDEM_RETURN_IF_ERROR(mix_->Run(gram, gram, mixed, nullptr, workspace, stream));
      TANDEM_RETURN_IF_ERROR(Copy(next, x, matrix_bytes(), stream));
      TANDEM_RETURN_IF_ERROR(
          apply_->Run(tall_ ? x : mixed, tall_ ? mixed : x, next, nullptr, workspace, stream));
      std::swap(x, next);
    }
    return x;
  }

 private:
  const MuonSettings settings_;
  const bool tall_;
  const int64_t elements_;
  const int64_t square_;
  std::unique_ptr<Gemm> gram_;   // A = X X^T.
  std::unique_ptr<Gemm> mix_;    // b A + c A A.
  std::unique_ptr<Gemm> apply_;  // a X + (b A + c A A) X.
};

absl::Status LowerMuon(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const MuonOp&>(*node.op);
  const Shape& shape = lowering.shape(node.inputs[0]);
  const Layout plain = Layout::Plain(DType::kFloat32, shape);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  TANDEM_RETURN_IF_ERROR(lowering.SettleVariable(node.inputs[4], plain));
  TANDEM_ASSIGN_OR_RETURN(const Place momentum, lowering.HomeAsMade(node.inputs[4]));
  if (!(home.layout == plain && momentum.layout == plain)) {
    return absl::InternalError("muon of a matrix that is not row-major");
  }
  TANDEM_ASSIGN_OR_RETURN(const ChangeSource grad, ChangeSourceOf(lowering, node.inputs[1], plain));
  TANDEM_ASSIGN_OR_RETURN(const Region rate, lowering.GetPlain(node.inputs[2]));
  const auto iterations = std::make_shared<NewtonSchulz>(op.settings, shape[0], shape[1]);
  TANDEM_RETURN_IF_ERROR(iterations->Plan(*lowering.device().blas, shape[0], shape[1]));
  const Region x = lowering.Scratch(iterations->matrix_bytes());
  const Region next = lowering.Scratch(iterations->matrix_bytes());
  const Region gram = lowering.Scratch(iterations->square_bytes());
  const Region mixed = lowering.Scratch(iterations->square_bytes());
  // Never empty, so that it has an address.
  const Region workspace = lowering.Scratch(std::max<int64_t>(1, iterations->workspace_bytes()));
  const Region factor = lowering.Scratch(sizeof(float));
  const Region sums = lowering.Scratch(kRowSumBytes);
  const Region parameter = home.region;
  const Region buffer = momentum.region;
  Step step = {.name = "muon",
               .reads = {parameter, grad.region, rate, buffer},
               .writes = {parameter, buffer, x, next, gram, mixed, workspace, factor, sums}};
  TANDEM_ASSIGN_OR_RETURN(const ApplyFlag apply, ApplyFlag::Of(lowering, ApplyOf(node), step));
  step.run = [=, s = op.settings, scale = op.Scale(shape[0], shape[1]),
              elements = shape.elements()](const RunContext& run) -> absl::Status {
    MuonStart start;
    start.elements = elements;
    start.grad = run.At(grad.region);
    start.grad_type = grad.type;
    start.momentum_buffer = run.At<float>(buffer);
    start.x = run.At<float>(x);
    start.momentum = s.momentum;
    start.nesterov = s.nesterov;
    start.epsilon = s.epsilon;
    start.apply = apply.At(run);
    StartMuon(start, run.At<float>(factor), run.At(sums), run.stream);
    TANDEM_ASSIGN_OR_RETURN(const float* direction,
                            iterations->Run(run.At<float>(x), run.At<float>(next), run.At<float>(gram),
                                            run.At<float>(mixed), run.At(workspace), run.stream));
    FinishMuon(elements, direction, run.At<const double>(rate), s.weight_decay, scale, apply.At(run),
               run.At<float>(parameter), run.stream);
    return absl::OkStatus();
  };
  lowering.Emit(std::move(step));
  for (const int i : op.MutatedInputs()) lowering.Changed(node.inputs[i]);
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> MuonOps() {
  static constexpr Offered kOps[] = {{"muon", LowerMuon}};
  return kOps;
}

}  // namespace tandem::cuda
