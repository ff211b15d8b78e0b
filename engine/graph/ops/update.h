#ifndef TANDEM_ENGINE_GRAPH_OPS_UPDATE_H_
#define TANDEM_ENGINE_GRAPH_OPS_UPDATE_H_

#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// What an optimizer keeps for a parameter.
struct OptimizerState {
  // Of the quantity, such as "momentum".
  const char* name;
  // One float64 number; otherwise it has the parameter's type and shape.
  bool scalar = false;
};

// One step of an optimizer for one parameter: op(parameter, grad, learning_rate float64 [], step int64 [],
// state...[, apply float64 []]), no outputs. `step` counts the steps taken before this one; t = step + 1.
// Parameter and state are variables, which the op changes in place; state is zero before step 0. Where
// `apply` is given and 0, nothing changes, whatever the gradient is. Not differentiable.
class UpdateOp : public Op {
 public:
  // In the order of the inputs that they are.
  virtual std::vector<OptimizerState> states() const = 0;
  // The input of a node of `inputs` inputs that `apply` is; below 0 where it has none.
  int ApplyInput(size_t inputs) const;

  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const final;
  std::vector<int> MutatedInputs() const final;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const final;

 protected:
  // What is wrong with the op's attributes; empty where nothing is.
  virtual std::string Fault() const = 0;
  // What is wrong with a parameter of such a shape; empty where nothing is. Default: any will do.
  virtual std::string FaultOf(const Shape& /*parameter*/) const { return ""; }
  // Multiplications, additions and what takes as long, of one element. Default: 0, for an op that has Flops.
  virtual double FlopsPerElement() const { return 0; }
  // Of the whole parameter.
  virtual double Flops(const Shape& parameter) const {
    return static_cast<double>(parameter.elements()) * FlopsPerElement();
  }
};

// The faults that attributes of several optimizers may have: "beta1 is 2"; empty where there is none.
std::string FaultOfShare(absl::string_view name, double value);        // In [0, 1).
std::string FaultOfEpsilon(double value);                              // Above 0.
std::string FaultOfNonNegative(absl::string_view name, double value);  // Finite.
// The first that there is.
std::string FirstFault(std::initializer_list<std::string> faults);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_UPDATE_H_
