// Cases of one operation or one optimizer.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/autodiff.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/reshape.h"
#include "engine/optimizers/optimizer.h"
#include "tests/golden/layers.h"
#include "tests/golden/optimizers.h"
#include "tests/golden/program.h"
#include "tests/golden/runner.h"

namespace tandem {
namespace {

// The sum of `value` times `weight`, element by element: its gradient by `value` is `weight`.
absl::StatusOr<ValueId> AddProjection(Program& program, ValueId value, const Tensor& weight) {
  const int64_t elements = weight.elements();
  if (program.graph().value(value).shape != weight.shape()) {
    return absl::InvalidArgumentError(absl::StrCat("grad_output has the shape ", weight.shape().ToString(),
                                                   ", the output ",
                                                   program.graph().value(value).shape.ToString()));
  }
  const absl::Span<const double> numbers = weight.data<double>();
  const ValueId row_weight =
      program.Variable("grad_output", Tensor::Of<double>({1, elements}, {numbers.begin(), numbers.end()}),
                       VariableKind::kStatistic);
  TANDEM_ASSIGN_OR_RETURN(const ValueId row,
                          program.graph().Add(std::make_shared<ReshapeOp>(Shape({1, elements})), {value}));
  TANDEM_ASSIGN_OR_RETURN(const ValueId sum,
                          program.graph().Add(std::make_shared<LinearOp>(), {row, row_weight}));
  return program.graph().Add(std::make_shared<ReshapeOp>(Shape()), {sum});
}

// Returns the names of an operation's inputs, as PyTorch names them.
std::vector<std::string> InputNames(const GoldenCase& golden) {
  std::vector<std::string> names;
  for (const char* name : {"input", "query", "key", "value", "h0", "c0"}) {
    if (golden.Has(name)) names.push_back(name);
  }
  for (int i = 0; golden.Has(absl::StrCat("input", i)); ++i) names.push_back(absl::StrCat("input", i));
  return names;
}

// Returns the names of an operation's parameters, in PyTorch's order.
std::vector<std::string> ParameterNames(const GoldenCase& golden) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (golden.Has(name)) names.push_back(name);
    return golden.Has(name);
  };
  for (const char* name :
       {"weight", "bias", "in_proj_weight", "in_proj_bias", "out_proj_weight", "out_proj_bias"}) {
    add(name);
  }
  // An LSTM's: of one layer, or of several and of both directions.
  const auto add_direction = [&](const std::string& suffix) {
    const bool found = add(absl::StrCat("weight_ih", suffix));
    for (const char* name : {"weight_hh", "bias_ih", "bias_hh"}) add(absl::StrCat(name, suffix));
    return found;
  };
  add_direction("");
  add_direction("_reverse");
  for (int layer = 0; add_direction(absl::StrCat("_l", layer)); ++layer) {
    add_direction(absl::StrCat("_l", layer, "_reverse"));
  }
  return names;
}

}  // namespace

absl::Status RunOperationCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report) {
  Program program(backend.make(0));
  std::vector<ValueId> inputs;
  std::vector<ValueId> weights;
  std::set<std::string> given;
  std::vector<std::string> names;  // The names of the targets.
  std::vector<ValueId> targets;
  for (const std::string& name : InputNames(golden)) {
    TANDEM_ASSIGN_OR_RETURN(const Tensor value, golden.Get(name));
    inputs.push_back(program.Input(name, value));
    // Indices have no gradient.
    if (!IsFloatingPoint(value.dtype())) {
      given.insert(name);
      continue;
    }
    names.push_back(name);
    targets.push_back(inputs.back());
  }
  for (const std::string& name : ParameterNames(golden)) {
    TANDEM_ASSIGN_OR_RETURN(const Tensor value, golden.Get(name));
    weights.push_back(program.Variable(name, value));
    names.push_back(name);
    targets.push_back(weights.back());
  }
  std::vector<std::string> statistics;
  for (const char* name : {"running_mean", "running_var"}) {
    if (!golden.Has(name)) continue;
    TANDEM_ASSIGN_OR_RETURN(const Tensor value, golden.Get(name));
    weights.push_back(program.Variable(name, value, VariableKind::kStatistic));
    statistics.push_back(name);
  }
  std::map<std::string, ValueId> others;
  TANDEM_ASSIGN_OR_RETURN(const ValueId output,
                          AddOperation(program.graph(), golden.attrs, inputs, weights, &others));
  TANDEM_ASSIGN_OR_RETURN(const Tensor grad_output, golden.Get("grad_output"));
  TANDEM_ASSIGN_OR_RETURN(const ValueId loss, AddProjection(program, output, grad_output));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> grads, AppendGradients(program.graph(), loss, targets));
  others["output"] = output;
  for (const auto& [name, value] : others) program.graph().MarkOutput(value);
  for (const ValueId grad : grads) program.graph().MarkOutput(grad);
  TANDEM_RETURN_IF_ERROR(program.Compile());
  TANDEM_RETURN_IF_ERROR(program.Run());

  // Every tensor of the case is either given or compared.
  std::set<std::string> known = std::move(given);
  known.insert(names.begin(), names.end());
  known.insert("grad_output");
  for (const auto& [name, value] : others) {
    if (!golden.Has(name) && name != "output") continue;
    known.insert(name);
    TANDEM_ASSIGN_OR_RETURN(const Tensor actual, program.Output(value));
    TANDEM_ASSIGN_OR_RETURN(const Tensor expected, golden.Get(name));
    report.Compare(name, actual, expected);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = absl::StrCat("grad_", names[i]);
    known.insert(name);
    TANDEM_ASSIGN_OR_RETURN(const Tensor actual_grad, program.Output(grads[i]));
    TANDEM_ASSIGN_OR_RETURN(const Tensor expected_grad, golden.Get(name));
    report.Compare(name, actual_grad, expected_grad);
  }
  for (const std::string& name : statistics) {
    // Without an "after", they stay.
    const std::string after = absl::StrCat(name, golden.Has(absl::StrCat(name, "_after")) ? "_after" : "");
    known.insert({name, after});
    TANDEM_ASSIGN_OR_RETURN(const Tensor actual_after, program.Read(name));
    TANDEM_ASSIGN_OR_RETURN(const Tensor expected_after, golden.Get(after));
    report.Compare(after, actual_after, expected_after);
  }
  for (const auto& [name, tensor] : golden.tensors) {
    if (known.count(name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", name, " is not understood"));
    }
  }
  return absl::OkStatus();
}

absl::Status RunOptimizerCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report) {
  TANDEM_ASSIGN_OR_RETURN(const v1::Optimizer optimizer, ReadOptimizer(golden.attrs));
  const std::vector<std::string> names = golden.NamesAfter("initial.");
  if (names.empty()) return absl::InvalidArgumentError("the case has no initial parameters");
  Program program(backend.make(0));
  std::vector<ValueId> parameters;
  std::vector<ValueId> grads;
  std::map<std::string, Tensor> all_grads;
  int64_t steps = 0;
  for (const std::string& name : names) {
    TANDEM_ASSIGN_OR_RETURN(const Tensor initial, golden.Get(absl::StrCat("initial.", name)));
    TANDEM_ASSIGN_OR_RETURN(const Tensor given, golden.Get(absl::StrCat("grads.", name)));
    steps = given.shape()[0];
    parameters.push_back(program.Variable(name, initial));
    grads.push_back(program.Input(absl::StrCat("grads.", name), Row(given, 0)));
    all_grads.emplace(name, given);
  }
  TANDEM_RETURN_IF_ERROR(AddOptimizer(program.graph(), optimizer, parameters, grads));
  TANDEM_RETURN_IF_ERROR(program.Compile());
  program.Set("learning_rate", Tensor::Of<double>({}, {LearningRateOf(optimizer)}));
  for (int64_t step = 0; step < steps; ++step) {
    program.Set("step", Tensor::Of<int64_t>({}, {step}));
    for (const auto& [name, given] : all_grads) program.Set(absl::StrCat("grads.", name), Row(given, step));
    TANDEM_RETURN_IF_ERROR(program.Run());
    for (const std::string& name : names) {
      TANDEM_ASSIGN_OR_RETURN(const Tensor actual, program.Read(name));
      TANDEM_ASSIGN_OR_RETURN(const Tensor expected, golden.Get(absl::StrCat("params.", name)));
      report.Compare(absl::StrCat("params.", name, " after step ", step), actual, Row(expected, step));
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem
