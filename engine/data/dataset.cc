#include "engine/data/dataset.h"

#include <utility>

#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/formats/idx_dataset.h"
#include "engine/data/normalization.h"
#include "engine/data/synthetic_dataset.h"

namespace tandem {
namespace {

absl::Status AddNormalization(const v1::DatasetSpec& spec, DatasetInfo* info) {
  absl::StatusOr<ResolvedNormalization> normalization =
      ResolveNormalization(spec.normalization(), info->shape);
  if (normalization.ok()) {
    info->normalization = *std::move(normalization);
    return absl::OkStatus();
  }
  FieldViolations violations;
  violations.AddAll("normalization", normalization.status());
  return violations.ToStatus();
}

// What the API can say and this engine does not do.
absl::Status CheckOffered(const v1::DatasetSpec& spec) {
  FieldViolations violations;
  const auto refuse = [&](bool given, absl::string_view field) {
    if (given) violations.Add(field, "is not offered by this version; leave it out");
  };
  refuse(spec.has_cifar(), "cifar");
  refuse(spec.has_image_folder(), "image_folder");
  refuse(spec.has_npy(), "npy");
  refuse(spec.has_csv(), "csv");
  refuse(spec.has_text(), "text");
  refuse(spec.has_validation_split(), "validation_split");
  refuse(spec.augmentation_size() > 0, "augmentation");
  refuse(spec.normalization().from_data(), "normalization.from_data");
  refuse(spec.synthetic().values() != 0, "synthetic.values");
  refuse(spec.synthetic().vocabulary() != 0, "synthetic.vocabulary");
  return violations.ToStatus();
}

absl::Status NoSource() { return FieldError("", "gives no source; give idx or synthetic"); }

}  // namespace

absl::string_view ToString(TargetType type) {
  switch (type) {
    case TargetType::kClass:
      return "classes";
    case TargetType::kValues:
      return "values";
    case TargetType::kTokens:
      return "tokens";
    case TargetType::kClassProbabilities:
      return "class probabilities";
  }
  return "nothing";
}

absl::StatusOr<DatasetInfo> DescribeDataset(const v1::DatasetSpec& spec) {
  TANDEM_RETURN_IF_ERROR(CheckOffered(spec));
  absl::StatusOr<DatasetInfo> info = NoSource();
  switch (spec.source_case()) {
    case v1::DatasetSpec::kIdx:
      info = DescribeIdx(spec.idx(), spec.train_limit(), spec.validation_limit());
      break;
    case v1::DatasetSpec::kSynthetic:
      info = DescribeSynthetic(spec.synthetic(), spec.train_limit(), spec.validation_limit());
      break;
    default:
      break;
  }
  if (info.ok()) TANDEM_RETURN_IF_ERROR(AddNormalization(spec, &*info));
  return info;
}

absl::StatusOr<OpenedDataset> OpenDataset(const v1::DatasetSpec& spec) {
  TANDEM_RETURN_IF_ERROR(CheckOffered(spec));
  absl::StatusOr<OpenedDataset> opened = NoSource();
  switch (spec.source_case()) {
    case v1::DatasetSpec::kIdx:
      opened = OpenIdx(spec.idx(), spec.train_limit(), spec.validation_limit());
      break;
    case v1::DatasetSpec::kSynthetic:
      opened = OpenSynthetic(spec.synthetic(), spec.train_limit(), spec.validation_limit());
      break;
    default:
      break;
  }
  if (opened.ok()) TANDEM_RETURN_IF_ERROR(AddNormalization(spec, &opened->info));
  return opened;
}

}  // namespace tandem
