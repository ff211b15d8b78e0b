// Cases of one loss.

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/autodiff.h"
#include "tests/golden/losses.h"
#include "tests/golden/program.h"
#include "tests/golden/runner.h"

namespace tandem {
namespace {

using Extents = std::vector<int64_t>;

Extents ExtentsOf(const Tensor& tensor) {
  return {tensor.shape().extents().begin(), tensor.shape().extents().end()};
}

// Returns the same elements in another shape.
Tensor Reshaped(const Tensor& tensor, Extents extents) {
  Tensor result(tensor.dtype(), Shape(std::move(extents)));
  std::memcpy(result.raw_data(), tensor.raw_data(), tensor.bytes());
  return result;
}

// PyTorch has classes in the second dimension, or in the only one; the engine in the last. [N, C, ...] ->
// [N, ..., C], and back.
Tensor ClassesLast(const Tensor& tensor) {
  Extents extents = ExtentsOf(tensor);
  if (extents.size() == 1) return Reshaped(tensor, {1, extents[0]});
  if (extents.size() == 2) return tensor;
  const int64_t rows = extents[0];
  const int64_t classes = extents[1];
  const int64_t places = tensor.elements() / (rows * classes);
  extents.erase(extents.begin() + 1);
  extents.push_back(classes);
  Tensor result(DType::kFloat64, Shape(extents));
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const int64_t n = i / (classes * places);
    const int64_t c = i / places % classes;
    const int64_t place = i % places;
    result.data<double>()[(n * places + place) * classes + c] = tensor.data<double>()[i];
  }
  return result;
}

Tensor ClassesBack(const Tensor& tensor, const Shape& shape) {
  const Tensor numbers = tensor.CastTo(DType::kFloat64);
  Tensor result(DType::kFloat64, shape);
  if (shape.rank() <= 2) return Reshaped(numbers, {shape.extents().begin(), shape.extents().end()});
  const int64_t classes = shape[1];
  const int64_t places = shape.elements() / (shape[0] * classes);
  for (int64_t i = 0; i < result.elements(); ++i) {
    const int64_t n = i / (classes * places);
    const int64_t c = i / places % classes;
    const int64_t place = i % places;
    result.data<double>()[i] = numbers.data<double>()[(n * places + place) * classes + c];
  }
  return result;
}

// `weight` as PyTorch broadcasts it to `shape`.
absl::StatusOr<std::vector<double>> Broadcast(const Tensor& weight, const Shape& shape) {
  const Tensor numbers = weight.CastTo(DType::kFloat64);
  const int missing = shape.rank() - weight.shape().rank();
  if (missing < 0) return absl::InvalidArgumentError("a weight has more dimensions than the input");
  std::vector<double> all;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    int64_t rest = i;
    int64_t at = 0;
    int64_t stride = 1;
    for (int d = shape.rank() - 1; d >= missing; --d) {
      const int64_t extent = weight.shape()[d - missing];
      if (extent != 1 && extent != shape[d]) {
        return absl::InvalidArgumentError("a weight does not fit the input");
      }
      if (extent != 1) at += rest % shape[d] * stride;
      stride *= extent;
      rest /= shape[d];
    }
    all.push_back(numbers.data<double>()[at]);
  }
  return all;
}

// Pairs [N, 2, D] of two tensors [N, D], or of two vectors.
Tensor Pairs(const Tensor& first, const Tensor& second) {
  const int64_t size = first.shape()[-1];
  const int64_t count = first.elements() / size;
  Tensor pairs(DType::kFloat64, Shape({count, 2, size}));
  for (int64_t n = 0; n < count; ++n) {
    for (int64_t i = 0; i < size; ++i) {
      pairs.data<double>()[(2 * n) * size + i] = first.data<double>()[n * size + i];
      pairs.data<double>()[(2 * n + 1) * size + i] = second.data<double>()[n * size + i];
    }
  }
  return pairs;
}

// The first or the second of each pair.
Tensor OfPairs(const Tensor& pairs, int which, const Shape& shape) {
  const Tensor numbers = pairs.CastTo(DType::kFloat64);
  const int64_t size = shape[-1];
  Tensor result(DType::kFloat64, shape);
  for (int64_t i = 0; i < result.elements(); ++i) {
    result.data<double>()[i] = numbers.data<double>()[(2 * (i / size) + which) * size + i % size];
  }
  return result;
}

// A case in the form that runs.
struct Prepared {
  Tensor input;
  GoldenLoss loss;
};

absl::StatusOr<Prepared> Prepare(const GoldenCase& golden) {
  Prepared prepared;
  TANDEM_ASSIGN_OR_RETURN(Tensor target, golden.Get("target"));
  if (golden.Has("input1")) {
    TANDEM_ASSIGN_OR_RETURN(const Tensor first, golden.Get("input1"));
    TANDEM_ASSIGN_OR_RETURN(const Tensor second, golden.Get("input2"));
    if (first.shape() != second.shape() || first.shape().rank() < 1 || first.shape().rank() > 2) {
      return absl::UnimplementedError("pairs of such shapes are not offered yet");
    }
    prepared.input = Pairs(first, second);
    prepared.loss.target_values = Reshaped(target, {target.elements()}).CastTo(DType::kInt64);
    return prepared;
  }
  TANDEM_ASSIGN_OR_RETURN(prepared.input, golden.Get("input"));
  if (IsOfClasses(golden.attrs)) {
    const bool one_row = prepared.input.shape().rank() == 1;
    if (golden.Has("weight")) {
      const absl::Span<const double> weight = golden.tensors.at("weight").data<double>();
      prepared.loss.weight.assign(weight.begin(), weight.end());
    }
    prepared.input = ClassesLast(prepared.input);
    if (target.dtype() == DType::kFloat64) {
      target = ClassesLast(target);
    } else if (one_row) {
      target = Reshaped(target, {1});
    }
    prepared.loss.target_values = std::move(target);
    return prepared;
  }
  for (const auto& [name, weights] :
       {std::pair("weight", &prepared.loss.weight), std::pair("pos_weight", &prepared.loss.pos_weight)}) {
    if (!golden.Has(name)) continue;
    TANDEM_ASSIGN_OR_RETURN(*weights, Broadcast(golden.tensors.at(name), prepared.input.shape()));
  }
  prepared.loss.target_values = target.CastTo(DType::kFloat64);
  return prepared;
}

}  // namespace

absl::Status RunLossCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report) {
  static const std::set<std::string> kKnown = {"input",       "input1",     "input2", "target",
                                               "weight",      "pos_weight", "loss",   "grad_input",
                                               "grad_input1", "grad_input2"};
  for (const auto& [name, tensor] : golden.tensors) {
    if (kKnown.count(name) == 0) {
      return absl::UnimplementedError(absl::StrCat("a loss with ", name, " is not offered yet"));
    }
  }
  TANDEM_ASSIGN_OR_RETURN(Prepared prepared, Prepare(golden));
  Program program(backend.make(0));
  prepared.loss.input = program.Input("input", prepared.input);
  prepared.loss.target = program.Input("target", prepared.loss.target_values);
  TANDEM_ASSIGN_OR_RETURN(const ValueId loss, AddLoss(program.graph(), golden.attrs, prepared.loss));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> grads,
                          AppendGradients(program.graph(), loss, {prepared.loss.input}));
  program.graph().MarkOutput(loss);
  program.graph().MarkOutput(grads[0]);
  TANDEM_RETURN_IF_ERROR(program.Compile());
  TANDEM_RETURN_IF_ERROR(program.Run());
  TANDEM_ASSIGN_OR_RETURN(const Tensor actual_loss, program.Output(loss));
  TANDEM_ASSIGN_OR_RETURN(const Tensor expected_loss, golden.Get("loss"));
  report.Compare("loss", actual_loss, expected_loss);
  TANDEM_ASSIGN_OR_RETURN(const Tensor grad, program.Output(grads[0]));
  if (golden.Has("input1")) {
    for (const int which : {0, 1}) {
      const std::string name = absl::StrCat("grad_input", which + 1);
      TANDEM_ASSIGN_OR_RETURN(const Tensor expected, golden.Get(name));
      report.Compare(name, OfPairs(grad, which, expected.shape()), expected);
    }
    return absl::OkStatus();
  }
  TANDEM_ASSIGN_OR_RETURN(const Tensor expected, golden.Get("grad_input"));
  report.Compare("grad_input", IsOfClasses(golden.attrs) ? ClassesBack(grad, expected.shape()) : grad,
                 expected);
  return absl::OkStatus();
}

}  // namespace tandem
