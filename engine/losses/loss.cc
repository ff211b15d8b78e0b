#include "engine/losses/loss.h"

#include <memory>
#include <vector>

#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/classification.h"

namespace tandem {

absl::Status CheckLoss(const v1::Loss& loss) {
  if (loss.kind_case() == v1::Loss::KIND_NOT_SET) {
    return FieldError("", "names no loss that is known; give softmax_cross_entropy");
  }
  const v1::SoftmaxCrossEntropy& classes = loss.softmax_cross_entropy();
  if (loss.kind_case() != v1::Loss::kSoftmaxCrossEntropy || classes.label_smoothing() != 0 ||
      !classes.class_weights().empty() || classes.has_ignore_index()) {
    return FieldError("", "is not available yet; give softmax_cross_entropy without settings");
  }
  return absl::OkStatus();
}

Shape OutputShapeFor(const v1::Loss& /*loss*/, int64_t classes) { return Shape({classes}); }

absl::StatusOr<ValueId> AddLoss(const v1::Loss& loss, ValueId output, ValueId labels, Graph& graph) {
  TANDEM_RETURN_IF_ERROR(CheckLoss(loss));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                          graph.AddNode(std::make_shared<SoftmaxCrossEntropyOp>(), {output, labels}));
  return outputs[0];
}

}  // namespace tandem
