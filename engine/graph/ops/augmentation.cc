#include "engine/graph/ops/augmentation.h"

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

absl::string_view ToString(ImageFill fill) {
  switch (fill) {
    case ImageFill::kZero:
      return "zero";
    case ImageFill::kReflect:
      return "reflect";
    case ImageFill::kEdge:
      return "edge";
  }
  return "unknown";
}

std::string AugmentOp::attributes() const { return absl::StrCat("column=", column); }

absl::StatusOr<std::vector<TensorType>> AugmentOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, 0, 4));
  TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, 1, 2));
  if (inputs[0].dtype != DType::kUInt8) return InputError(*this, inputs, "the images must be uint8");
  if (inputs[1].dtype != DType::kFloat64) return InputError(*this, inputs, "the numbers must be float64");
  if (inputs[1].shape[0] != inputs[0].shape[0]) {
    return InputError(*this, inputs, "there must be a row of numbers for each image");
  }
  if (column < 0 || column + columns() > inputs[1].shape[1]) {
    return InputError(*this, inputs,
                      absl::StrCat("there are no columns ", column, " to ", column + columns() - 1));
  }
  return std::vector<TensorType>{inputs[0]};
}

absl::StatusOr<std::vector<TensorType>> ColourOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_ASSIGN_OR_RETURN(std::vector<TensorType> outputs, AugmentOp::Infer(inputs));
  if (inputs[0].shape[1] != 3) return InputError(*this, inputs, "the images must have three channels");
  return outputs;
}

std::string FlipImagesOp::attributes() const {
  return absl::StrCat(AugmentOp::attributes(), vertical ? " vertical" : "");
}

std::string TranslateImagesOp::attributes() const {
  return absl::StrCat(AugmentOp::attributes(), " fill=", tandem::ToString(fill));
}

std::string ResampleImagesOp::attributes() const {
  return absl::StrCat(AugmentOp::attributes(), " fill=", tandem::ToString(fill));
}

std::string SpreadImagesOp::attributes() const {
  return absl::StrCat(AugmentOp::attributes(), about_mean ? " about_mean" : "");
}

}  // namespace tandem
