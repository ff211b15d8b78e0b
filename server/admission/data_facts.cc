#include "server/admission/data_facts.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/field_violations.h"
#include "engine/base/utf8.h"
#include "engine/data/normalization.h"

namespace tandem {
namespace {

v1::SampleKind KindOf(SampleType type) {
  switch (type) {
    case SampleType::kBytes:
      return v1::SAMPLE_KIND_BYTES;
    case SampleType::kFloats:
      return v1::SAMPLE_KIND_FLOATS;
    case SampleType::kTokens:
      break;
  }
  return v1::SAMPLE_KIND_TOKENS;
}

v1::TargetKind KindOf(TargetKind type) {
  switch (type) {
    case TargetKind::kClass:
    case TargetKind::kClassProbabilities:
      return v1::TARGET_KIND_CLASS;
    case TargetKind::kValues:
      return v1::TARGET_KIND_VALUES;
    case TargetKind::kTokens:
      break;
  }
  return v1::TARGET_KIND_TOKENS;
}

SampleType TypeOf(v1::SampleKind kind) {
  switch (kind) {
    case v1::SAMPLE_KIND_FLOATS:
      return SampleType::kFloats;
    case v1::SAMPLE_KIND_TOKENS:
      return SampleType::kTokens;
    default:
      return SampleType::kBytes;
  }
}

TargetKind TypeOf(v1::TargetKind kind) {
  switch (kind) {
    case v1::TARGET_KIND_VALUES:
      return TargetKind::kValues;
    case v1::TARGET_KIND_TOKENS:
      return TargetKind::kTokens;
    default:
      return TargetKind::kClass;
  }
}

// These bounds are far above any readable data set.
constexpr int kMostDimensions = 16;
constexpr int64_t kMostOf = int64_t{1} << 50;

// Returns true if all extents are at least 1 and their product with `count` is at most kMostOf.
template <typename Extents>
bool IsPossible(const Extents& extents, int64_t count) {
  if (extents.size() > kMostDimensions) return false;
  int64_t left = kMostOf / std::max<int64_t>(count, 1);
  for (const int64_t extent : extents) {
    if (extent < 1 || extent > left) return false;
    left /= extent;
  }
  return left > 0;
}

bool IsCount(int64_t number) { return number >= 0 && number <= kMostOf; }

template <typename Extents>
Shape ShapeFrom(const Extents& extents) {
  return Shape(std::vector<int64_t>(extents.begin(), extents.end()));
}

}  // namespace

void SetDatasetInfo(const DatasetInfo& info, v1::Dataset* dataset) {
  for (const int64_t extent : info.shape.extents()) dataset->add_shape(extent);
  dataset->set_classes(info.classes);
  dataset->set_train_samples(info.train_samples);
  dataset->set_validation_samples(info.validation_samples);
  dataset->set_sample_kind(KindOf(info.sample_type));
  dataset->set_target_kind(KindOf(info.target_type));
  for (const int64_t extent : info.target_shape.extents()) dataset->add_target_shape(extent);
  dataset->clear_notices();
  for (const std::string& notice : info.notices) {
    if (dataset->notices_size() == kMostNotices) break;
    // A notice may name files, and names of files are any bytes.
    dataset->add_notices(ToUtf8(absl::string_view(notice).substr(0, kMostNoticeBytes)));
  }
}

void SetClassNames(const DatasetInfo& info, v1::Dataset* dataset) {
  size_t bytes = 0;
  dataset->clear_class_names();
  for (const std::string& name : info.class_names) {
    bytes += name.size();
    if (bytes > kMostClassNamesBytes ||
        static_cast<size_t>(dataset->class_names_size()) == kMostDataEntries) {
      break;
    }
    dataset->add_class_names(name);
  }
}

namespace {

// Copies the category_columns of `info` if they are within the limits, otherwise none. Without columns,
// embed_categories refuses the data set. A part of the columns would give another network than the user
// expects.
void SetCategoryColumns(const DatasetInfo& info, internal::v1::DataFacts& facts) {
  size_t bytes = 0;
  for (const v1::EmbeddedColumn& column : info.category_columns) bytes += column.name().size();
  if (bytes > kMostColumnNamesBytes || info.category_columns.size() > kMostCategoryColumns) return;
  facts.mutable_category_columns()->Add(info.category_columns.begin(), info.category_columns.end());
}

// Returns whether the columns lie one behind the other within samples of `shape`.
template <typename Columns, typename Extents>
bool ArePossible(const Columns& columns, const Extents& shape) {
  if (columns.empty()) return true;
  if (columns.size() > kMostCategoryColumns || shape.size() != 1) return false;
  int64_t end = 0;
  for (const v1::EmbeddedColumn& column : columns) {
    if (column.first_input() < end || column.inputs() < 1 ||
        column.inputs() > shape[0] - column.first_input()) {
      return false;
    }
    end = column.first_input() + column.inputs();
  }
  return true;
}

}  // namespace

internal::v1::DataFacts FactsOf(const DatasetInfo& info) {
  internal::v1::DataFacts facts;
  SetDatasetInfo(info, facts.mutable_dataset());
  SetClassNames(info, facts.mutable_dataset());
  facts.set_memory_bytes(info.memory_bytes);
  facts.set_mixes_classes(info.mixes_classes);
  facts.set_one_label(info.one_label);
  facts.set_one_class_mend(info.one_class_mend);
  if (info.ignored_label.has_value()) facts.set_ignored_label(*info.ignored_label);
  SetCategoryColumns(info, facts);
  if (info.class_labels.size() <= kMostDataEntries) {
    facts.mutable_class_labels()->Add(info.class_labels.begin(), info.class_labels.end());
  }
  return facts;
}

absl::Status CheckFacts(const internal::v1::DataFacts& facts) {
  const v1::Dataset& dataset = facts.dataset();
  const bool is_possible =
      IsCount(dataset.train_samples()) && IsCount(dataset.validation_samples()) &&
      IsCount(dataset.classes()) && IsCount(facts.memory_bytes()) &&
      IsPossible(dataset.shape(), dataset.train_samples() + dataset.validation_samples()) &&
      IsPossible(dataset.target_shape(), dataset.train_samples() + dataset.validation_samples()) &&
      dataset.class_names_size() <= std::max<int64_t>(dataset.classes(), 0) &&
      dataset.notices_size() <= kMostNotices && v1::SampleKind_IsValid(dataset.sample_kind()) &&
      v1::TargetKind_IsValid(dataset.target_kind()) &&
      ArePossible(facts.category_columns(), dataset.shape()) &&
      static_cast<size_t>(facts.class_labels_size()) <= kMostDataEntries &&
      std::all_of(facts.class_labels().begin(), facts.class_labels().end(),
                  [&](int32_t label) { return label >= 0 && label < dataset.classes(); }) &&
      std::all_of(dataset.class_counts().begin(), dataset.class_counts().end(), IsCount);
  if (is_possible) return absl::OkStatus();
  return absl::InternalError(
      "cannot use the reply of the process that read the data set: its counts or shapes are impossible; "
      "check that tandemd and tandem-worker have the same version, and that the files are complete");
}

absl::StatusOr<DatasetInfo> InfoOf(const internal::v1::DataFacts& facts, const v1::DatasetSpec& spec) {
  const v1::Dataset& dataset = facts.dataset();
  DatasetInfo info;
  info.shape = ShapeFrom(dataset.shape());
  info.classes = dataset.classes();
  info.train_samples = dataset.train_samples();
  info.validation_samples = dataset.validation_samples();
  info.memory_bytes = facts.memory_bytes();
  info.sample_type = TypeOf(dataset.sample_kind());
  info.target_type = TypeOf(dataset.target_kind());
  info.target_shape = ShapeFrom(dataset.target_shape());
  info.mixes_classes = facts.mixes_classes();
  info.class_names.assign(dataset.class_names().begin(), dataset.class_names().end());
  info.notices.assign(dataset.notices().begin(), dataset.notices().end());
  info.class_labels.assign(facts.class_labels().begin(), facts.class_labels().end());
  info.one_label = facts.one_label();
  info.stays_in_files = spec.has_webdataset();
  info.one_class_mend = facts.one_class_mend();
  if (facts.has_ignored_label()) info.ignored_label = facts.ignored_label();
  info.category_columns.assign(facts.category_columns().begin(), facts.category_columns().end());
  if (info.sample_type == SampleType::kTokens) return info;
  absl::StatusOr<ResolvedNormalization> normalization =
      ResolveNormalization(spec.normalization(), info.shape, DTypeOfSamples(info.sample_type));
  FieldViolations violations;
  violations.AddAll("normalization", normalization.status());
  if (!violations.empty()) return violations.ToStatus();
  info.normalization = *std::move(normalization);
  return info;
}

}  // namespace tandem
