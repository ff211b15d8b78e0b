#ifndef TANDEM_ENGINE_BACKEND_OP_CASES_H_
#define TANDEM_ENGINE_BACKEND_OP_CASES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/backend/device.h"
#include "engine/graph/graph.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// A graph under construction, with numbers for its inputs and variables. The numbers depend on the names
// alone. Floating-point numbers are exact in float32, so every backend starts from the same numbers.
class CaseGraph {
 public:
  // `dtype` is the default type of floating-point values.
  explicit CaseGraph(DType dtype) : dtype_(dtype) {}

  // Adds an input or a variable with numbers in [low, high).
  ValueId Input(absl::string_view name, Shape shape, double low = -1, double high = 1);
  ValueId Variable(absl::string_view name, Shape shape, double low = -1, double high = 1,
                   VariableKind kind = VariableKind::kParameter);
  ValueId Meter(absl::string_view name, int64_t size);
  // Adds a float64 number that an optimizer keeps.
  ValueId Kept(absl::string_view name, double number);
  // Adds an input of whole numbers in [0, classes).
  ValueId Labels(absl::string_view name, int64_t samples, int64_t classes);
  // As Labels, with any shape.
  ValueId Tokens(absl::string_view name, Shape shape, int64_t vocabulary);
  ValueId Bytes(absl::string_view name, Shape shape);
  // Adds a scalar input with the DType of T.
  template <typename T>
  ValueId Number(absl::string_view name, T number) {
    inputs_.push_back(Tensor::Of<T>({}, {number}));
    return graph_.AddInput(name, DTypeOf<T>::value, {});
  }

  // Appends a node and marks its outputs as outputs of the graph. Fails the test if the inputs do not fit.
  std::vector<ValueId> Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  // As Add without marking the outputs, so that their memory may be reused.
  std::vector<ValueId> AddHidden(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);

  DType dtype() const { return dtype_; }
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  // Returns the inputs' numbers, in the order of the graph's inputs.
  std::vector<Tensor>& inputs() { return inputs_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  std::map<std::string, Tensor>& variables() { return variables_; }
  const std::map<std::string, Tensor>& variables() const { return variables_; }

 private:
  DType dtype_;
  Graph graph_;
  std::vector<Tensor> inputs_;
  std::map<std::string, Tensor> variables_;
};

// A graph that tests an op or several ops together.
struct OpCase {
  std::string name;
  std::function<void(CaseGraph& graph)> build;
};

// Returns cases for every kind of op, with odd shapes.
const std::vector<OpCase>& OpCases();

// The results of a run.
struct RunResult {
  std::vector<Tensor> outputs;              // In the order of the graph's outputs.
  std::map<std::string, Tensor> variables;  // All variables of the set.
};

// Writes the case's variables into `variables`. They must exist: compile the graph first.
absl::Status WriteVariables(const CaseGraph& graph, Variables& variables);
// Runs with the case's inputs and reads all results.
absl::StatusOr<RunResult> RunCase(const CaseGraph& graph, Executable& executable, const Variables& variables,
                                  Communicator* communicator = nullptr);
// Compiles, writes, runs and reads on a new set of variables.
absl::StatusOr<RunResult> RunCaseOn(Device& device, const CaseGraph& graph);

// Returns the largest difference between two tensors of the same shape. The unit is the largest magnitude in
// `expected`, or `least_magnitude` if it is larger. Returns infinity if a NaN or an infinity has no equal.
double RelativeError(const Tensor& actual, const Tensor& expected, double least_magnitude = 1e-30);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_OP_CASES_H_
