#ifndef TANDEM_ENGINE_GRAPH_OPS_UPDATE_H_
#define TANDEM_ENGINE_GRAPH_OPS_UPDATE_H_

#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/graph/op.h"

namespace tandem {

// A step of an optimizer for a parameter: op(parameter, grad, learning_rate float64 [], step int64 [],
// state... [, apply float64 []]), no outputs. `step` counts the earlier steps, and t = step + 1. The op
// changes the parameter and the state, variables, in place. The state is zero before step 0, unless the op
// says otherwise. If `apply` is given and 0, the op changes nothing for any gradient. Not differentiable.
class UpdateOp : public Op {
 public:
  // Returns the names of the states, such as "momentum", in the order of the state inputs. A state has the
  // parameter's type and shape.
  virtual std::vector<absl::string_view> states() const = 0;
  // Returns the position of `apply` in a node with `inputs` inputs, or a negative number if it is missing.
  int ApplyInput(size_t inputs) const;

  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const final;
  std::vector<int> MutatedInputs() const final;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const final;

 protected:
  // Returns the fault of the op's attributes, or "".
  virtual std::string Fault() const = 0;
  // Returns the fault of a parameter's shape, or "". Default: any shape is right.
  virtual std::string FaultOf(const Shape& /*parameter*/) const { return ""; }
  // Returns the cost of an element, in multiplications and additions. Default: 0, for an op that overrides
  // Flops.
  virtual double FlopsPerElement() const { return 0; }
  // Returns the cost of the whole parameter.
  virtual double Flops(const Shape& parameter) const {
    return static_cast<double>(parameter.elements()) * FlopsPerElement();
  }
};

// Each returns the fault of an optimizer's attribute, such as "beta1 is 2", or "".
std::string FaultOfShare(absl::string_view name, double value);        // Must be in [0, 1).
std::string FaultOfEpsilon(double value);                              // Must be above 0.
std::string FaultOfNonNegative(absl::string_view name, double value);  // Must be finite, and at least 0.
// Returns the first fault that is not "".
std::string FirstFault(std::initializer_list<std::string> faults);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_UPDATE_H_
