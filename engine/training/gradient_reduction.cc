#include "engine/training/gradient_reduction.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/memory_plan.h"
#include "engine/graph/ops/accumulate_gradient.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/gradient_factors.h"
#include "engine/graph/ops/matmul.h"
#include "engine/graph/ops/reshape.h"

namespace tandem {
namespace {

// The extents of a gradient as a matrix.
struct MatrixSize {
  int64_t rows = 0;
  int64_t columns = 0;
};

MatrixSize MatrixSizeOf(const Shape& gradient) {
  if (gradient.rank() < 2 || gradient.elements() == 0) return {};
  return {gradient[0], gradient.elements() / gradient[0]};
}

}  // namespace

GradientReduction::GradientReduction(Graph* graph, double scale, absl::Span<const ValueId> parameters,
                                     const v1::AllReduce& settings)
    : graph_(graph),
      scale_(scale),
      rank_(settings.has_compression() ? settings.compression().rank() : 0),
      parameters_(parameters.begin(), parameters.end()),
      gradients_(parameters.size(), kNoValue),
      reduced_(parameters.size(), kNoValue) {
  for (size_t end = parameters.size(); end > 0;) {
    const int64_t enough =
        std::max<int64_t>(1, buckets_.empty() ? settings.first_bucket_bytes() : settings.bucket_bytes());
    size_t begin = end;
    for (int64_t bytes = 0; begin > 0 && bytes < enough; --begin) {
      bytes += DenseBytes(graph->value(parameters[begin - 1]));
    }
    buckets_.push_back({begin, end, {}});
    end = begin;
  }
}

absl::Status GradientReduction::Add(size_t parameter, ValueId gradient) {
  gradients_[parameter] = gradient;
  for (; next_ < buckets_.size(); ++next_) {
    Bucket& bucket = buckets_[next_];
    for (size_t i = bucket.begin; i < bucket.end; ++i) {
      if (gradients_[i] == kNoValue) return absl::OkStatus();
    }
    TANDEM_RETURN_IF_ERROR(Reduce(bucket));
    if (next_ > 0) TANDEM_RETURN_IF_ERROR(ReduceOthers(buckets_[next_ - 1]));
  }
  TANDEM_RETURN_IF_ERROR(ReduceOthers(buckets_.back()));
  for (const Bucket& bucket : buckets_) TANDEM_RETURN_IF_ERROR(Restore(bucket));
  return absl::OkStatus();
}

absl::Status GradientReduction::Reduce(Bucket& bucket) {
  std::vector<ValueId> inputs;
  for (size_t i = bucket.begin; i < bucket.end; ++i) {
    if (rank_ > 0 && IsCompressed(graph_->value(gradients_[i]).shape, rank_)) {
      TANDEM_ASSIGN_OR_RETURN(Factored factored, Factor(i));
      bucket.factored.push_back(factored);
      inputs.push_back(factored.basis);
    } else {
      inputs.push_back(gradients_[i]);
    }
  }
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, AddAllReduce(std::move(inputs)));
  auto factored = bucket.factored.begin();
  for (size_t i = bucket.begin; i < bucket.end; ++i) {
    const ValueId output = outputs[i - bucket.begin];
    if (factored != bucket.factored.end() && factored->parameter == i) {
      (factored++)->basis = output;
    } else {
      reduced_[i] = output;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<GradientReduction::Factored> GradientReduction::Factor(size_t parameter) {
  const Value& gradient = graph_->value(gradients_[parameter]);
  const std::string& name = graph_->value(parameters_[parameter]).name;
  const DType dtype = gradient.dtype;
  const auto [rows, columns] = MatrixSizeOf(gradient.shape);
  Factored factored = {.parameter = parameter, .tall = rows > columns};
  factored.error = graph_->AddVariable(absl::StrCat(kCompressionErrorPrefix, name), VariableKind::kResidual,
                                       dtype, Shape({rows, columns}));
  factored.start =
      graph_->AddVariable(absl::StrCat(kCompressionStartPrefix, name), VariableKind::kOptimizerState, dtype,
                          Shape({factored.tall ? rows : columns, rank_}));
  TANDEM_ASSIGN_OR_RETURN(
      const ValueId matrix,
      graph_->Add(std::make_shared<ReshapeOp>(Shape({rows, columns})), {gradients_[parameter]}));
  TANDEM_RETURN_IF_ERROR(
      graph_
          ->AddNode(std::make_shared<AccumulateGradientOp>(1, /*overwrite=*/false), {factored.error, matrix})
          .status());
  TANDEM_ASSIGN_OR_RETURN(factored.basis, graph_->Add(std::make_shared<MatmulOp>(factored.tall),
                                                      {factored.error, factored.start}));
  return factored;
}

absl::Status GradientReduction::ReduceOthers(Bucket& bucket) {
  if (bucket.factored.empty()) return absl::OkStatus();
  std::vector<ValueId> inputs;
  for (Factored& one : bucket.factored) {
    TANDEM_ASSIGN_OR_RETURN(one.basis, graph_->Add(std::make_shared<OrthonormalizeOp>(), {one.basis}));
    TANDEM_ASSIGN_OR_RETURN(const ValueId other,
                            graph_->Add(std::make_shared<MatmulOp>(!one.tall), {one.error, one.basis}));
    inputs.push_back(other);
    TANDEM_ASSIGN_OR_RETURN(const ValueId product,
                            graph_->Add(std::make_shared<MatmulOp>(false, /*transpose_b=*/true),
                                        {one.tall ? other : one.basis, one.tall ? one.basis : other}));
    TANDEM_RETURN_IF_ERROR(
        graph_->AddNode(std::make_shared<AccumulateGradientOp>(-1, /*overwrite=*/false), {one.error, product})
            .status());
  }
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, AddAllReduce(std::move(inputs)));
  for (size_t i = 0; i < outputs.size(); ++i) bucket.factored[i].other = outputs[i];
  return absl::OkStatus();
}

absl::Status GradientReduction::Restore(const Bucket& bucket) {
  for (const Factored& one : bucket.factored) {
    TANDEM_ASSIGN_OR_RETURN(const ValueId matrix, graph_->Add(std::make_shared<RestoreGradientOp>(one.tall),
                                                              {one.basis, one.other, one.start}));
    const Shape& shape = graph_->value(gradients_[one.parameter]).shape;
    TANDEM_ASSIGN_OR_RETURN(reduced_[one.parameter],
                            graph_->Add(std::make_shared<ReshapeOp>(Shape(shape)), {matrix}));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ValueId>> GradientReduction::AddAllReduce(std::vector<ValueId> inputs) {
  const int count = static_cast<int>(inputs.size());
  return graph_->AddNode(std::make_shared<AllReduceOp>(scale_, CountAllReduces(*graph_), count),
                         std::move(inputs));
}

bool IsCompressed(const Shape& gradient, int64_t rank) {
  const auto [rows, columns] = MatrixSizeOf(gradient);
  // Divided, because products may overflow.
  return rows > 0 && 2 * rank <= rows / (1 + static_cast<double>(rows) / static_cast<double>(columns));
}

int64_t NumbersToReduce(const Shape& gradient, int64_t rank) {
  if (!IsCompressed(gradient, rank)) return gradient.elements();
  const auto [rows, columns] = MatrixSizeOf(gradient);
  return rank * (rows + columns);
}

absl::StatusOr<ValueId> AddTotal(ValueId value, int replicas, Graph* graph) {
  if (replicas == 1) return value;
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<ValueId> totals,
      graph->AddNode(std::make_shared<AllReduceOp>(1, CountAllReduces(*graph), 1), {value}));
  return totals[0];
}

}  // namespace tandem
