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

// A graph under construction together with numbers for its inputs and variables, which follow from their
// names alone. Floating-point numbers are exact in float32, so that every backend starts from the same.
class CaseGraph {
 public:
  // `dtype` is the type of all floating-point values that do not say theirs.
  explicit CaseGraph(DType dtype) : dtype_(dtype) {}

  // Numbers from the range [low, high).
  ValueId Input(absl::string_view name, Shape shape, double low = -1, double high = 1);
  ValueId Variable(absl::string_view name, Shape shape, double low = -1, double high = 1,
                   VariableKind kind = VariableKind::kParameter);
  ValueId Meter(absl::string_view name, int64_t size);
  // Whole numbers from the range [0, classes).
  ValueId Labels(absl::string_view name, int64_t samples, int64_t classes);
  // The same, of any shape.
  ValueId Tokens(absl::string_view name, Shape shape, int64_t vocabulary);
  ValueId Bytes(absl::string_view name, Shape shape);
  // An input that is one number, of the C++ type's own DType.
  template <typename T>
  ValueId Number(absl::string_view name, T number) {
    inputs_.push_back(Tensor::Of<T>({}, {number}));
    return graph_.AddInput(name, DTypeOf<T>::value, {});
  }

  // Appends a node, whose outputs become outputs of the graph; fails the test where it does not fit.
  std::vector<ValueId> Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  // The same without making them outputs, so that their memory may be used again.
  std::vector<ValueId> AddHidden(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);

  DType dtype() const { return dtype_; }
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  // In the order of the graph's inputs.
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

// A graph that shows what one op, or some together, compute.
struct OpCase {
  std::string name;
  std::function<void(CaseGraph& graph)> build;
};

// Cases for every kind of op, with odd shapes.
const std::vector<OpCase>& OpCases();

// What a run leaves behind.
struct RunResult {
  std::vector<Tensor> outputs;              // In the order of the graph's outputs.
  std::map<std::string, Tensor> variables;  // All of the set.
};

// Writes the case's variables into `variables`, whose executable `executable` is.
absl::Status WriteVariables(const CaseGraph& graph, Variables& variables);
// Runs with the case's inputs, and reads everything.
absl::StatusOr<RunResult> RunCase(const CaseGraph& graph, Executable& executable, const Variables& variables,
                                  Communicator* communicator = nullptr);
// Compiles, writes, runs and reads on a set of variables of its own.
absl::StatusOr<RunResult> RunCaseOn(Device& device, const CaseGraph& graph);

// The largest difference between two tensors of one shape, divided by the largest magnitude in `expected` or
// `least_magnitude`; NaN and infinity differ from all but themselves, and then the result is infinite.
double RelativeError(const Tensor& actual, const Tensor& expected, double least_magnitude = 1e-30);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_OP_CASES_H_
