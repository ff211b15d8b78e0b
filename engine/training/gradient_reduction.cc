#include "engine/training/gradient_reduction.h"

#include <algorithm>
#include <memory>

#include "engine/base/status_macros.h"
#include "engine/graph/memory_plan.h"
#include "engine/graph/ops/all_reduce.h"

namespace tandem {

GradientReduction::GradientReduction(Graph* graph, double scale, absl::Span<const ValueId> parameters,
                                     const v1::AllReduce& buckets)
    : graph_(graph),
      scale_(scale),
      gradients_(parameters.size(), kNoValue),
      reduced_(parameters.size(), kNoValue) {
  for (size_t end = parameters.size(); end > 0;) {
    const int64_t enough =
        std::max<int64_t>(1, buckets_.empty() ? buckets.first_bucket_bytes() : buckets.bucket_bytes());
    size_t begin = end;
    for (int64_t bytes = 0; begin > 0 && bytes < enough; --begin) {
      bytes += DenseBytes(graph->value(parameters[begin - 1]));
    }
    buckets_.push_back({begin, end});
    end = begin;
  }
}

absl::Status GradientReduction::Add(size_t parameter, ValueId gradient) {
  gradients_[parameter] = gradient;
  for (; next_ < buckets_.size(); ++next_) {
    const auto begin = gradients_.begin() + static_cast<std::ptrdiff_t>(buckets_[next_].begin);
    const auto end = gradients_.begin() + static_cast<std::ptrdiff_t>(buckets_[next_].end);
    if (std::find(begin, end, kNoValue) != end) return absl::OkStatus();
    TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> reduced,
                            graph_->AddNode(std::make_shared<AllReduceOp>(scale_, CountAllReduces(*graph_),
                                                                          static_cast<int>(end - begin)),
                                            std::vector<ValueId>(begin, end)));
    std::copy(reduced.begin(), reduced.end(),
              reduced_.begin() + static_cast<std::ptrdiff_t>(buckets_[next_].begin));
  }
  return absl::OkStatus();
}

absl::StatusOr<ValueId> AddTotal(ValueId value, int replicas, Graph* graph) {
  if (replicas == 1) return value;
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<ValueId> totals,
      graph->AddNode(std::make_shared<AllReduceOp>(1, CountAllReduces(*graph), 1), {value}));
  return totals[0];
}

}  // namespace tandem
