#include "engine/graph/ops/classification.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engine/backends/cuda/kernels/classification.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/accumulate.h"

namespace tandem::cuda {
namespace {

Layout Number() { return Layout::Plain(DType::kFloat32, Shape()); }

// Rows of scores in the type in which they were computed, but row-major.
struct Rows {
  int64_t rows = 0;
  int64_t classes = 0;
  DType type = DType::kFloat32;
  Region region;
};

absl::StatusOr<Rows> RowsOf(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& shape = lowering.shape(node.inputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  Rows rows;
  rows.classes = shape[-1];
  rows.rows = shape.elements() / rows.classes;
  rows.type = home.layout.dtype();
  TANDEM_ASSIGN_OR_RETURN(rows.region, lowering.Get(node.inputs[0], Layout::Plain(rows.type, shape)));
  return rows;
}

// The terms of an accumulate node.
struct Terms {
  Region meter;
  std::vector<Region> values;
  std::vector<bool> is_wide;
  std::vector<double> weights;

  // Returns the terms from `first` on, as many as a kernel takes.
  MeterTerms At(const RunContext& run, size_t first) const {
    MeterTerms terms;
    terms.sums = run.At<double>(meter) + first;
    for (size_t i = first; i < values.size() && terms.count < MeterTerms::kMost; ++i, ++terms.count) {
      terms.values[terms.count] = run.At(values[i]);
      terms.is_wide[terms.count] = is_wide[i];
      terms.weights[terms.count] = weights[i];
    }
    return terms;
  }
};

absl::StatusOr<Terms> TermsOf(Lowering& lowering, const Node& node) {
  Terms terms;
  TANDEM_ASSIGN_OR_RETURN(terms.meter, lowering.GetPlain(node.inputs[0]));
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const DType dtype = lowering.value(node.inputs[i]).dtype;
    if (dtype != DType::kFloat64) TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[i]));
    TANDEM_ASSIGN_OR_RETURN(const Region value, lowering.GetPlain(node.inputs[i]));
    terms.values.push_back(value);
    terms.is_wide.push_back(dtype == DType::kFloat64);
  }
  terms.weights = static_cast<const AccumulateOp&>(*node.op).weights;
  return terms;
}

// Returns the loss's gradient if the loss's kernel can compute it: the probabilities have no other reader,
// and the gradient's factor already exists.
const Node* GradOf(const Lowering& lowering, const Node& node) {
  const Node* grad = lowering.uses().OnlyReader(node.outputs[1], "softmax_cross_entropy_grad");
  if (grad == nullptr || grad->inputs[1] != node.inputs[1]) return nullptr;
  const bool is_there = lowering.value(grad->inputs[2]).role != ValueRole::kIntermediate;
  return is_there && !lowering.uses().ChangesBetween(grad->inputs[2], node.id, grad->id) ? grad : nullptr;
}

// Returns a count_correct of the same rows after `node`.
const Node* CountOf(const Lowering& lowering, const Node& node) {
  for (const NodeId id : lowering.uses().readers(node.inputs[0])) {
    const Node& reader = lowering.graph().node(id);
    if (id < node.id || lowering.absorbed(id) || reader.op->kind() != "count_correct" ||
        reader.inputs != node.inputs)
      continue;
    if (!static_cast<const CountCorrectOp&>(*reader.op).ignore_index.has_value()) return &reader;
  }
  return nullptr;
}

// Returns the accumulate node that reads only the loss, `count` and constants. `count` may be null.
const Node* MeterOf(const Lowering& lowering, const Node& node, const Node* count) {
  for (const NodeId id : lowering.uses().readers(node.outputs[0])) {
    const Node& reader = lowering.graph().node(id);
    if (reader.op->kind() != "accumulate" || reader.inputs.size() > 1 + MeterTerms::kMost) continue;
    const bool is_own = std::all_of(reader.inputs.begin() + 1, reader.inputs.end(), [&](ValueId input) {
      return input == node.outputs[0] || (count != nullptr && input == count->outputs[0]) ||
             lowering.value(input).role == ValueRole::kConstant;
    });
    const std::vector<NodeId>& others = lowering.uses().readers(reader.inputs[0]);
    const bool is_untouched = std::none_of(others.begin(), others.end(),
                                           [&](NodeId other) { return other > node.id && other < id; });
    if (is_own && is_untouched) return &reader;
  }
  return nullptr;
}

// The kernel also computes the gradient, the number of correct rows and the meter, if there are such nodes.
absl::Status LowerSoftmaxCrossEntropy(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Rows rows, RowsOf(lowering, node));
  TANDEM_ASSIGN_OR_RETURN(const Region labels, lowering.GetPlain(node.inputs[1]));
  const Shape& shape = lowering.shape(node.inputs[0]);
  const Region loss = lowering.Define(node.outputs[0], Number());
  const Region sums = lowering.Scratch(kRowSumBytes);
  Step step = {.name = "softmax_cross_entropy", .reads = {rows.region, labels}, .writes = {loss, sums}};

  Region probabilities;
  Region grad;
  Region grad_loss;
  const Node* const grad_node = GradOf(lowering, node);
  if (grad_node != nullptr) {
    step.name += "+grad";
    TANDEM_ASSIGN_OR_RETURN(grad_loss, lowering.GetPlain(grad_node->inputs[2]));
    grad = lowering.Define(grad_node->outputs[0], Layout::Plain(rows.type, shape));
    step.reads.push_back(grad_loss);
    step.in_place = {{static_cast<int>(step.writes.size()), 0}};
    step.writes.push_back(grad);
    lowering.Absorb(grad_node->id);
  } else {
    probabilities = lowering.DefinePlain(node.outputs[1]);
    step.writes.push_back(probabilities);
  }
  Region correct;
  int64_t k = 1;
  const Node* const count = CountOf(lowering, node);
  if (count != nullptr) {
    step.name += "+count";
    k = static_cast<const CountCorrectOp&>(*count->op).k;
    correct = lowering.Define(count->outputs[0], Number());
    step.writes.push_back(correct);
    lowering.Absorb(count->id);
  }
  std::optional<Terms> terms;
  if (const Node* const meter = MeterOf(lowering, node, count); meter != nullptr) {
    step.name += "+meter";
    TANDEM_ASSIGN_OR_RETURN(terms, TermsOf(lowering, *meter));
    step.reads.push_back(terms->meter);
    step.writes.push_back(terms->meter);
    for (size_t i = 0; i < terms->values.size(); ++i) {
      const bool is_constant = lowering.value(meter->inputs[i + 1]).role == ValueRole::kConstant;
      if (is_constant) step.reads.push_back(terms->values[i]);
    }
    lowering.Changed(meter->inputs[0]);
    lowering.Absorb(meter->id);
  }

  const bool has_grad = grad_node != nullptr;
  const bool has_count = count != nullptr;
  step.run = [=](const RunContext& run) {
    CrossEntropy work;
    work.rows = rows.rows;
    work.classes = rows.classes;
    work.type = rows.type;
    work.logits = run.At(rows.region);
    work.labels = run.At<const int32_t>(labels);
    work.loss = run.At<float>(loss);
    if (has_grad) {
      work.grad = run.At(grad);
      work.grad_loss = run.At<const float>(grad_loss);
    } else {
      work.probabilities = run.At<float>(probabilities);
    }
    if (has_count) work.correct = run.At<float>(correct);
    work.k = k;
    if (terms.has_value()) work.meter = terms->At(run, 0);
    RunCrossEntropy(work, run.At(sums), run.stream);
    return absl::OkStatus();
  };
  lowering.Emit(std::move(step));
  return absl::OkStatus();
}

absl::Status LowerSoftmaxCrossEntropyGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& shape = lowering.shape(node.inputs[0]);
  const int64_t classes = shape[-1];
  const int64_t rows = shape.elements() / classes;
  const DType type = lowering.compute();
  TANDEM_ASSIGN_OR_RETURN(const Region probabilities, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region labels, lowering.GetPlain(node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(const Region grad_loss, lowering.GetPlain(node.inputs[2]));
  const Region grad = lowering.Define(node.outputs[0], Layout::Plain(type, shape));
  std::vector<std::pair<int, int>> in_place;
  if (type == DType::kFloat32) in_place.emplace_back(0, 0);
  lowering.Emit({.name = "softmax_cross_entropy_grad",
                 .reads = {probabilities, labels, grad_loss},
                 .writes = {grad},
                 .in_place = std::move(in_place),
                 .run = [=](const RunContext& run) {
                   RunCrossEntropyGrad(rows, classes, run.At<const float>(probabilities),
                                       run.At<const int32_t>(labels), run.At<const float>(grad_loss), type,
                                       run.At(grad), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerCountCorrect(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const CountCorrectOp&>(*node.op);
  TANDEM_ASSIGN_OR_RETURN(const Rows rows, RowsOf(lowering, node));
  const bool mixed = IsFloatingPoint(lowering.value(node.inputs[1]).dtype);
  if (mixed) TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(const Region target, lowering.GetPlain(node.inputs[1]));
  const Region correct = lowering.Define(node.outputs[0], Number());
  const Region sums = lowering.Scratch(kRowSumBytes);
  lowering.Emit({.name = "count_correct",
                 .reads = {rows.region, target},
                 .writes = {correct, sums},
                 .run = [=, k = op.k, ignored = op.ignore_index.value_or(kNoClass)](const RunContext& run) {
                   RunCountCorrect(rows.rows, rows.classes, rows.type, run.At(rows.region),
                                   mixed ? nullptr : run.At<const int32_t>(target),
                                   mixed ? run.At<const float>(target) : nullptr, k, ignored,
                                   run.At<float>(correct), run.At(sums), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerCountLabels(Lowering& lowering, const Node& node) {
  const int64_t ignored = static_cast<const CountLabelsOp&>(*node.op).ignore_index;
  const int64_t elements = lowering.shape(node.inputs[0]).elements();
  TANDEM_ASSIGN_OR_RETURN(const Region labels, lowering.GetPlain(node.inputs[0]));
  const Region count = lowering.Define(node.outputs[0], Number());
  const Region sums = lowering.Scratch(kRowSumBytes);
  lowering.Emit(
      {.name = "count_labels", .reads = {labels}, .writes = {count, sums}, .run = [=](const RunContext& run) {
         RunCountLabels(elements, run.At<const int32_t>(labels), ignored, run.At<float>(count), run.At(sums),
                        run.stream);
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

absl::Status LowerCountSides(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Rows rows, RowsOf(lowering, node));
  const bool numbers = IsFloatingPoint(lowering.value(node.inputs[1]).dtype);
  if (numbers) TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(const Region target, lowering.GetPlain(node.inputs[1]));
  const Region right = lowering.Define(node.outputs[0], Number());
  const Region sums = lowering.Scratch(kRowSumBytes);
  lowering.Emit({.name = "count_sides",
                 .reads = {rows.region, target},
                 .writes = {right, sums},
                 .run = [=](const RunContext& run) {
                   RunCountSides(rows.rows * rows.classes, rows.type, run.At(rows.region),
                                 numbers ? nullptr : run.At<const int32_t>(target),
                                 numbers ? run.At<const float>(target) : nullptr, run.At<float>(right),
                                 run.At(sums), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerAccumulate(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Terms terms, TermsOf(lowering, node));
  std::vector<Region> reads = terms.values;
  reads.push_back(terms.meter);
  lowering.Emit({.name = "accumulate",
                 .reads = std::move(reads),
                 .writes = {terms.meter},
                 .run = [terms](const RunContext& run) {
                   for (size_t first = 0; first < terms.values.size(); first += MeterTerms::kMost) {
                     AddToMeter(terms.At(run, first), run.stream);
                   }
                   return absl::OkStatus();
                 }});
  lowering.Changed(node.inputs[0]);
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> ClassificationOps() {
  static constexpr Offered kOps[] = {
      {"accumulate", LowerAccumulate},
      {"count_correct", LowerCountCorrect},
      {"count_labels", LowerCountLabels},
      {"count_sides", LowerCountSides},
      {"softmax_cross_entropy", LowerSoftmaxCrossEntropy},
      {"softmax_cross_entropy_grad", LowerSoftmaxCrossEntropyGrad},
  };
  return kOps;
}

}  // namespace tandem::cuda
