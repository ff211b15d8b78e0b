#include "engine/training/fit_data.h"

#include <cstdint>
#include <limits>

#include "engine/base/field_violations.h"
#include "engine/layers/model.h"
#include "engine/layers/model_template.h"
#include "engine/losses/loss.h"

namespace tandem {
namespace {

bool WantsTokens(const v1::Model& model) { return model.template_().has_mini_gpt() || ReadsTokens(model); }

bool WantsImages(const v1::Model& model) {
  return TakesImages(model.template_()) || model.input().shape_size() == 3;
}

// Returns the kind of targets that the loss needs if the targets are no tokens. Unspecified if the loss
// accepts classes and values.
v1::TargetKind TargetsFor(const v1::Loss& loss) {
  switch (loss.kind_case()) {
    case v1::Loss::kSoftmaxCrossEntropy:
    case v1::Loss::kNegativeLogLikelihood:
    case v1::Loss::kHinge:
      return v1::TARGET_KIND_CLASS;
    case v1::Loss::kMse:
    case v1::Loss::kL1:
    case v1::Loss::kHuber:
    case v1::Loss::kSmoothL1:
    case v1::Loss::kKlDivergence:
      return v1::TARGET_KIND_VALUES;
    default:
      return v1::TARGET_KIND_UNSPECIFIED;
  }
}

// Returns whether the loss excludes scaled targets. A missing loss is reported elsewhere.
bool RefusesScaledTargets(const v1::Loss& loss) {
  return loss.kind_case() != v1::Loss::KIND_NOT_SET && !TakesScaledTargets(loss);
}

}  // namespace

v1::DatasetSpec FitData(const v1::JobSpec& spec, v1::DatasetSpec dataset) {
  if (dataset.has_csv() && dataset.csv().target_scaling() == v1::NUMBER_SCALING_UNSPECIFIED &&
      RefusesScaledTargets(spec.training().loss())) {
    dataset.mutable_csv()->set_target_scaling(v1::NUMBER_SCALING_NONE);
  }
  if (!dataset.has_npy()) return dataset;
  v1::NpySource& npy = *dataset.mutable_npy();
  const bool tokens = WantsTokens(spec.model());
  if (npy.inputs() == v1::SAMPLE_KIND_UNSPECIFIED && tokens) npy.set_inputs(v1::SAMPLE_KIND_TOKENS);
  if (npy.layout() == v1::ARRAY_LAYOUT_UNSPECIFIED && !tokens && WantsImages(spec.model())) {
    npy.set_layout(v1::ARRAY_LAYOUT_NCHW);
  }
  const v1::Loss& loss = spec.training().loss();
  if (npy.targets() == v1::TARGET_KIND_UNSPECIFIED && !tokens) npy.set_targets(TargetsFor(loss));
  const int64_t ignored = IgnoreIndexOf(loss).value_or(0);
  if (!npy.has_ignore_index() && ignored < 0 && ignored >= std::numeric_limits<int32_t>::min()) {
    npy.set_ignore_index(static_cast<int32_t>(ignored));
  }
  return dataset;
}

absl::Status CheckDataChoices(const v1::JobSpec& spec, const v1::DatasetSpec& dataset) {
  if (dataset.csv().target_scaling() != v1::NUMBER_SCALING_STANDARD ||
      !RefusesScaledTargets(spec.training().loss())) {
    return absl::OkStatus();
  }
  return FieldError("csv.target_scaling",
                    "is standard, but the job's loss takes no scaled targets; leave target_scaling out, or "
                    "give the loss mse, l1, huber or smooth_l1");
}

}  // namespace tandem
