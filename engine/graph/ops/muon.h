#ifndef TANDEM_ENGINE_GRAPH_OPS_MUON_H_
#define TANDEM_ENGINE_GRAPH_OPS_MUON_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/ops/update.h"

namespace tandem {

// muon (Jordan et al. 2024), as torch.optim.Muon, for a parameter [rows, columns]:
//
//   m = momentum m + (1 - momentum) grad
//   u = nesterov ? (1 - momentum) grad + momentum m : m
//   X = u / max(|u|, epsilon), transposed if rows > columns
//   steps times, with A = X X^T: X = a X + (b A + c A A) X
//   parameter -= learning_rate weight_decay parameter
//   parameter -= learning_rate s X, transposed back
//
// s is sqrt(max(1, rows / columns)). With match_adamw, s is 0.2 sqrt(max(rows, columns)). PyTorch iterates in
// bfloat16, this op in the parameter's type.
struct MuonSettings {
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.1;
  int steps = 5;
  std::array<double, 3> coefficients = {3.4445, -4.775, 2.0315};  // a, b, c.
  double epsilon = 1e-7;
  bool match_adamw = false;
};
class MuonOp final : public UpdateOp {
 public:
  static constexpr int kMaxSteps = 99;

  explicit MuonOp(MuonSettings settings) : settings(settings) {}
  absl::string_view kind() const override { return "muon"; }
  std::string attributes() const override;
  std::vector<absl::string_view> states() const override { return {"momentum"}; }
  // Returns the factor s.
  double Scale(int64_t rows, int64_t columns) const;

  MuonSettings settings;

 protected:
  std::string Fault() const override;
  std::string FaultOf(const Shape& parameter) const override;
  double Flops(const Shape& parameter) const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_MUON_H_
