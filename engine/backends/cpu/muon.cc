#include "engine/backends/cpu/muon.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "dnnl.hpp"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/muon.h"

namespace tandem::cpu {
namespace {

// c = alpha a b + beta c, each row-major. a is [m, k], or [k, m] if transposed. b is [k, n], or [n, k].
absl::Status Multiply(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                      const float* a, const float* b, float beta, float* c) {
  const dnnl::status status = dnnl::sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a,
                                          transpose_a ? m : k, b, transpose_b ? k : n, beta, c, n);
  if (status == dnnl::status::success) return absl::OkStatus();
  return absl::InternalError("cpu: oneDNN cannot multiply matrices");
}

// Memory of the iterations: two of the parameter's size, two squares of its smaller extent.
struct MuonScratch {
  float* x;
  float* next;
  float* gram;
  float* mixed;
};

// Runs the Newton-Schulz iterations on scratch.x [rows, columns]. Returns the place of the result. If rows >
// columns it iterates on the transpose: X (b A + c A A) with A = X^T X.
absl::StatusOr<const float*> Orthogonalize(const MuonSettings& s, int64_t rows, int64_t columns,
                                           const Team& team, MuonScratch scratch) {
  const bool tall = rows > columns;
  const int64_t small = std::min(rows, columns);
  const auto a = static_cast<float>(s.coefficients[0]);
  const auto b = static_cast<float>(s.coefficients[1]);
  const auto c = static_cast<float>(s.coefficients[2]);
  for (int step = 0; step < s.steps; ++step) {
    float* x = scratch.x;
    TANDEM_RETURN_IF_ERROR(
        Multiply(tall, !tall, small, small, std::max(rows, columns), 1, x, x, 0, scratch.gram));
    team.For(small * small, [&](int64_t begin, int64_t end) {
      std::copy(scratch.gram + begin, scratch.gram + end, scratch.mixed + begin);
    });
    TANDEM_RETURN_IF_ERROR(
        Multiply(false, false, small, small, small, c, scratch.gram, scratch.gram, b, scratch.mixed));
    team.For(rows * columns,
             [&](int64_t begin, int64_t end) { std::copy(x + begin, x + end, scratch.next + begin); });
    TANDEM_RETURN_IF_ERROR(Multiply(false, false, rows, columns, small, 1, tall ? x : scratch.mixed,
                                    tall ? scratch.mixed : x, a, scratch.next));
    std::swap(scratch.x, scratch.next);
  }
  return scratch.x;
}

}  // namespace

absl::Status LowerMuon(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const MuonOp&>(*node.op);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region momentum, lowering.GetPlain(node.inputs[4]));
  TANDEM_ASSIGN_OR_RETURN(const Place momentum_home, lowering.Home(node.inputs[4]));
  if (!home.layout.plain() || !momentum_home.layout.plain()) {
    return absl::InternalError("cpu: muon of a matrix that is not row-major");
  }
  const Region parameter = home.region;
  TANDEM_ASSIGN_OR_RETURN(const Region grad, lowering.GetPlain(node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(const Region rate, lowering.GetPlain(node.inputs[2]));
  const int64_t rows = lowering.shape(node.inputs[0])[0];
  const int64_t columns = lowering.shape(node.inputs[0])[1];
  const int64_t elements = rows * columns;
  const int64_t square = std::min(rows, columns) * std::min(rows, columns);
  const auto floats = [](int64_t count) { return count * static_cast<int64_t>(sizeof(float)); };
  const Region x = lowering.Scratch(floats(elements));
  const Region next = lowering.Scratch(floats(elements));
  const Region gram = lowering.Scratch(floats(square));
  const Region mixed = lowering.Scratch(floats(square));
  lowering.Emit(
      {.name = "muon",
       .reads = {parameter, grad, rate, momentum},
       .writes = {parameter, momentum, x, next, gram, mixed},
       .run = [=, s = op.settings, scale = op.Scale(rows, columns)](const RunContext& run) -> absl::Status {
         float* p = run.At<float>(parameter);
         float* m = run.At<float>(momentum);
         const float* g = run.At<const float>(grad);
         const MuonScratch scratch = {run.At<float>(x), run.At<float>(next), run.At<float>(gram),
                                      run.At<float>(mixed)};
         const auto keep = static_cast<float>(s.momentum);
         const auto fresh = static_cast<float>(1 - s.momentum);
         run.team->For(elements, [&](int64_t begin, int64_t end) {
           for (int64_t i = begin; i < end; ++i) {
             m[i] = keep * m[i] + fresh * g[i];
             scratch.x[i] = s.nesterov ? fresh * g[i] + keep * m[i] : m[i];
           }
         });
         const double norm =
             std::max(std::sqrt(run.kernels->sum_of_squares(scratch.x, 0, elements)), s.epsilon);
         run.team->For(elements, [&](int64_t begin, int64_t end) {
           run.kernels->scale(scratch.x, static_cast<float>(1 / norm), scratch.x, begin, end);
         });
         TANDEM_ASSIGN_OR_RETURN(const float* direction, Orthogonalize(s, rows, columns, *run.team, scratch));
         const double learning_rate = *run.At<const double>(rate);
         const auto decayed = static_cast<float>(1 - learning_rate * s.weight_decay);
         const auto step = static_cast<float>(learning_rate * scale);
         run.team->For(elements, [&](int64_t begin, int64_t end) {
           for (int64_t i = begin; i < end; ++i) p[i] = decayed * p[i] - step * direction[i];
         });
         return absl::OkStatus();
       }});
  for (const int i : op.MutatedInputs()) lowering.Changed(node.inputs[i]);
  return absl::OkStatus();
}

}  // namespace tandem::cpu
