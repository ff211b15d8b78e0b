#include "engine/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "engine/data/augment/augmenter.h"
#include "engine/data/formats/cifar_dataset.h"
#include "engine/data/formats/csv_dataset.h"
#include "engine/data/formats/idx_dataset.h"
#include "engine/data/formats/image_folder_dataset.h"
#include "engine/data/formats/npy_dataset.h"
#include "engine/data/formats/text_dataset.h"
#include "engine/data/formats/webdataset.h"
#include "engine/data/match_classes.h"
#include "engine/data/match_columns.h"
#include "engine/data/statistics.h"
#include "engine/data/subset.h"
#include "engine/data/synthetic_dataset.h"
#include "engine/tensor/tensor.h"

namespace tandem {
namespace {

constexpr size_t kMaxClassNameBytes = 1024;

absl::Status NoSource() { return FieldError("", "gives no source; give one, such as idx or synthetic"); }

// Returns the names that a source matches itself. Class names are included only if the spec does not rename
// classes.
DataNames NamesForSource(const v1::DatasetSpec& spec, const DataNames* model) {
  DataNames names = model == nullptr ? DataNames{.matches_inputs = false, .matches_outputs = false} : *model;
  if (spec.class_names_size() > 0 || !names.matches_outputs) names.classes.clear();
  if (!names.matches_outputs) names.targets.clear();
  if (!names.matches_inputs) {
    names.features.clear();
    names.preparation.reset();
  }
  return names;
}

absl::StatusOr<DatasetInfo> DescribeSource(const v1::DatasetSpec& spec, const DataNames& model) {
  switch (spec.source_case()) {
    case v1::DatasetSpec::kIdx:
      return DescribeIdx(spec.idx());
    case v1::DatasetSpec::kSynthetic:
      return DescribeSynthetic(spec.synthetic());
    case v1::DatasetSpec::kCifar:
      return DescribeCifar(spec.cifar());
    case v1::DatasetSpec::kImageFolder:
      return DescribeImageFolder(spec.image_folder(), model);
    case v1::DatasetSpec::kNpy:
      return DescribeNpy(spec.npy());
    case v1::DatasetSpec::kCsv:
      return DescribeCsv(spec, model);
    case v1::DatasetSpec::kText:
      return DescribeText(spec, model);
    case v1::DatasetSpec::kWebdataset:
      return DescribeWebDataset(spec.webdataset());
    case v1::DatasetSpec::SOURCE_NOT_SET:
      break;
  }
  return NoSource();
}

absl::StatusOr<OpenedDataset> OpenSource(const v1::DatasetSpec& spec, const DataNames& model) {
  switch (spec.source_case()) {
    case v1::DatasetSpec::kIdx:
      return OpenIdx(spec.idx());
    case v1::DatasetSpec::kSynthetic:
      return OpenSynthetic(spec.synthetic());
    case v1::DatasetSpec::kCifar:
      return OpenCifar(spec.cifar());
    case v1::DatasetSpec::kImageFolder:
      return OpenImageFolder(spec.image_folder(), model);
    case v1::DatasetSpec::kNpy:
      return OpenNpy(spec.npy());
    case v1::DatasetSpec::kCsv:
      return OpenCsv(spec, model);
    case v1::DatasetSpec::kText:
      return OpenText(spec, model);
    case v1::DatasetSpec::kWebdataset:
      return OpenWebDataset(spec.webdataset());
    case v1::DatasetSpec::SOURCE_NOT_SET:
      break;
  }
  return NoSource();
}

absl::Status StreamSource(const v1::DatasetSpec& spec, UseSamples use) {
  switch (spec.source_case()) {
    case v1::DatasetSpec::kIdx:
      return StreamIdx(spec.idx(), use);
    case v1::DatasetSpec::kSynthetic:
      return StreamSynthetic(spec.synthetic(), use);
    case v1::DatasetSpec::kCifar:
      return StreamCifar(spec.cifar(), use);
    case v1::DatasetSpec::kImageFolder:
      return StreamImageFolder(spec.image_folder(), use);
    case v1::DatasetSpec::kNpy:
      return StreamNpy(spec.npy(), use);
    case v1::DatasetSpec::kCsv:
      return StreamCsv(spec, use);
    case v1::DatasetSpec::kText:
      return absl::OkStatus();
    case v1::DatasetSpec::kWebdataset:
      return StreamWebDataset(spec.webdataset(), use);
    case v1::DatasetSpec::SOURCE_NOT_SET:
      break;
  }
  return NoSource();
}

// Returns the class of each of the source's `samples` training samples. Decodes no pictures.
absl::StatusOr<std::vector<int32_t>> SourceLabels(const v1::DatasetSpec& spec, int64_t samples) {
  std::vector<int32_t> labels;
  if (spec.has_image_folder()) {
    TANDEM_ASSIGN_OR_RETURN(labels, ImageFolderLabels(spec.image_folder()));
  } else if (spec.has_webdataset()) {
    TANDEM_ASSIGN_OR_RETURN(labels, WebDatasetLabels(spec.webdataset()));
  } else {
    labels.resize(samples);
    TANDEM_RETURN_IF_ERROR(StreamSource(
        spec, [&](int64_t first, int64_t count, const void* /*samples*/, const int32_t* classes) {
          const int64_t end = std::min(first + count, samples);
          for (int64_t i = first; i < end; ++i) labels[i] = classes[i - first];
        }));
  }
  // Files may have changed since the samples were counted. The reader of the samples reports that.
  labels.resize(samples);
  return labels;
}

// Checks the parts of a spec that need no files.
void CheckNumbers(const v1::DatasetSpec& spec, FieldViolations& violations) {
  for (const auto& [field, limit] : {std::pair("train_limit", spec.train_limit()),
                                     std::pair("validation_limit", spec.validation_limit())}) {
    if (limit < 0) violations.Add(field, absl::StrCat("is ", limit, "; it must not be negative"));
  }
  const double fraction = spec.validation_split().fraction();
  if (spec.has_validation_split() && !(fraction > 0 && fraction < 1)) {
    violations.Add("validation_split.fraction",
                   absl::StrCat("is ", fraction, "; it must be above 0 and below 1"));
  }
  const v1::ValidationSplit& split = spec.validation_split();
  if (spec.has_csv()) return;
  for (const auto& [field, is_given] : {std::pair("group_column", !split.group_column().empty()),
                                        std::pair("time_column", !split.time_column().empty())}) {
    if (!is_given) continue;
    violations.Add(absl::StrCat("validation_split.", field), "needs a table; leave it out, or give csv");
  }
}

// Checks that class names fit clients and the model's metadata: both accept UTF-8 alone.
void CheckClassNames(const DatasetInfo& info, FieldViolations& violations) {
  for (const std::string& name : info.class_names) {
    const bool short_enough = name.size() <= kMaxClassNameBytes;
    if (short_enough && IsUtf8(name)) continue;
    violations.Add("class_names",
                   absl::StrCat("have '", ToUtf8(absl::string_view(name).substr(0, 60)),
                                short_enough ? "', which is not UTF-8"
                                             : absl::StrCat("...', of ", name.size(), " bytes; at most ",
                                                            kMaxClassNameBytes, " are taken"),
                                "; name the class otherwise in the data"));
    return;
  }
}

// Checks that the number of classes is at most the number that a file with so many targets can need.
void CheckClassCount(const v1::DatasetSpec& spec, const DatasetInfo& source, FieldViolations& violations) {
  const int64_t samples = std::max(source.train_samples, source.validation_samples);
  const int64_t most = kMaxClassesAnyway + samples * std::max<int64_t>(source.target_shape.elements(), 1);
  // Synthetic data have their own limits.
  if (source.classes <= most || spec.has_synthetic()) return;
  const bool is_given =
      spec.npy().classes() > 0 || spec.csv().classes() > 0 || spec.webdataset().classes() > 0;
  const char* const source_field = spec.has_npy()          ? "npy"
                                   : spec.has_csv()        ? "csv"
                                   : spec.has_webdataset() ? "webdataset"
                                                           : "";
  if (is_given) {
    violations.Add(absl::StrCat(source_field, ".classes"),
                   absl::StrCat("is ", source.classes, ", but data with ", samples, " samples have at most ",
                                most, " classes; correct it, or leave it out"));
    return;
  }
  violations.Add(source_field,
                 absl::StrCat("has the label ", source.classes - 1, ", but data with ", samples,
                              " samples have at most ", most, " classes; number the classes from 0"));
}

// Returns whether the source makes the validation split itself.
bool SplitsItself(const v1::DatasetSpec& spec) {
  if (spec.has_csv()) return spec.has_validation_split() && spec.csv().validation().empty();
  return spec.has_text() && spec.text().validation().empty();
}

// Returns the number of training samples that a split takes for validation, or 0.
int64_t SplitOff(const v1::DatasetSpec& spec, const DatasetInfo& source) {
  if (!spec.has_validation_split() || SplitsItself(spec) || source.validation_samples > 0) return 0;
  return SplitSamples(source.train_samples, spec.validation_split().fraction());
}

SplitIndices Split(const v1::ValidationSplit& spec, int64_t samples, int64_t validation_samples,
                   absl::Span<const int32_t> labels) {
  return spec.stratified() ? SplitStratified(labels, validation_samples, spec.seed())
                           : SplitAtRandom(samples, validation_samples, spec.seed());
}

int64_t Limited(int64_t samples, int64_t limit) { return limit > 0 ? std::min(samples, limit) : samples; }

// Returns the source's info after the rest of the spec. `labels` receives the model's label of each label of
// the source, or stays empty if labels are equal.
absl::StatusOr<DatasetInfo> Derive(const v1::DatasetSpec& spec, const DatasetInfo& source,
                                   const DataNames* model, std::vector<int32_t>* labels) {
  FieldViolations violations;
  CheckNumbers(spec, violations);
  CheckClassCount(spec, source, violations);
  DatasetInfo info = source;
  // A table reports this itself.
  if (spec.validation_split().stratified() && !spec.has_csv() && source.target_type != TargetKind::kClass) {
    violations.Add("validation_split.stratified",
                   absl::StrCat("is given, but the targets are ", ToString(source.target_type),
                                ", not classes; leave it out"));
  }
  if (SplitsItself(spec)) {
    // The source has made the split.
  } else if (spec.has_validation_split() && source.validation_samples > 0) {
    violations.Add("validation_split",
                   "is given, but the data set has validation samples of its own; leave one of them out");
  } else if (spec.has_validation_split() && source.train_samples < 2) {
    violations.Add("validation_split", "needs at least 2 training samples");
  } else if (violations.empty()) {
    info.validation_samples += SplitOff(spec, source);
    info.train_samples -= SplitOff(spec, source);
  }
  if (violations.empty()) {
    info.train_samples = Limited(info.train_samples, spec.train_limit());
    info.validation_samples = Limited(info.validation_samples, spec.validation_limit());
    // The indices of the subsets.
    if (info.train_samples < source.train_samples) {
      info.memory_bytes += source.train_samples * static_cast<int64_t>(sizeof(uint32_t));
    }
    if (info.validation_samples != source.validation_samples) {
      info.memory_bytes += info.validation_samples * static_cast<int64_t>(sizeof(uint32_t));
    }
  }
  if (spec.class_names_size() > 0) {
    info.class_names.assign(spec.class_names().begin(), spec.class_names().end());
    if (spec.class_names_size() != info.classes) {
      violations.Add("class_names", absl::StrCat("gives ", spec.class_names_size(),
                                                 " names, but the data set has ", info.classes, " classes"));
    }
  }
  CheckClassNames(info, violations);
  if (model != nullptr && violations.empty()) {
    absl::StatusOr<std::vector<int32_t>> matched = MatchClasses(spec, *model, info);
    violations.AddAll("", matched.status());
    if (matched.ok()) *labels = *std::move(matched);
    // Names such as "2000000000" make more labels than any network has outputs.
    const bool are_few = info.classes <= kMaxClassesAnyway + static_cast<int64_t>(labels->size());
    if (!labels->empty() && are_few) info.class_labels = ClassLabels(*labels, info.classes);
    violations.AddAll("", MatchColumns(spec, *model, info));
  }
  if (info.sample_type == SampleType::kTokens) {
    if (spec.has_normalization()) {
      violations.Add("normalization", "is given, but the samples are tokens; leave it out");
    }
  } else {
    absl::StatusOr<ResolvedNormalization> normalization =
        ResolveNormalization(spec.normalization(), info.shape, DTypeOfSamples(info.sample_type));
    violations.AddAll("normalization", normalization.status());
    if (normalization.ok()) info.normalization = *std::move(normalization);
  }
  violations.AddAll("", CheckAugmentation(spec.augmentation(), info));
  info.mixes_classes = MixesClasses(spec.augmentation());
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return info;
}

// Returns the class of each sample.
absl::StatusOr<std::vector<int32_t>> AllLabels(const Dataset& dataset) {
  std::vector<uint32_t> indices(dataset.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<int32_t> labels(dataset.size());
  TANDEM_RETURN_IF_ERROR(dataset.GatherTargets(indices, labels.data()));
  return labels;
}

std::unique_ptr<const Dataset> FirstOf(std::unique_ptr<const Dataset> whole, int64_t samples) {
  if (whole == nullptr || whole->size() == samples) return whole;
  std::vector<uint32_t> indices(samples);
  std::iota(indices.begin(), indices.end(), 0);
  return std::make_unique<Subset>(std::move(whole), std::move(indices));
}

// Returns a notice if 32-bit floats round a channel's numbers by more than a hundredth of their deviation. ""
// otherwise.
std::string RoundingNotice(const ChannelStatistics& statistics, const DatasetInfo& info) {
  if (info.sample_type != SampleType::kFloats) return "";
  for (size_t i = 0; i < statistics.mean.size(); ++i) {
    const double rounding = std::abs(statistics.mean[i]) * std::numeric_limits<float>::epsilon() / 2;
    const double deviation = statistics.standard_deviation[i];
    // From 2^24 on, floats do not hold every whole number, so that different numbers may have become equal.
    const bool may_be_equal = deviation == 0 && std::abs(statistics.mean[i]) >= (1 << 24);
    if (!may_be_equal && (deviation == 0 || !(rounding > deviation / 100))) continue;
    // Each column of a prepared table has several inputs.
    return absl::StrCat(!info.preparation.has_value() && i < info.feature_names.size()
                            ? absl::StrCat("The column '", info.feature_names[i], "'")
                            : absl::StrCat("Channel ", i, " of the samples"),
                        " has numbers near ", statistics.mean[i], " with a deviation of ", deviation,
                        ". 32-bit floats round them by ", rounding,
                        "; subtract a constant from the data, or give a table csv.scaling: standard.");
  }
  return "";
}

absl::Status ResolveFromData(const Dataset& train, DatasetInfo& info) {
  TANDEM_ASSIGN_OR_RETURN(const ChannelStatistics statistics, ComputeStatistics(train, info));
  ResolvedNormalization& normalization = info.normalization;
  for (size_t i = 0; i < statistics.mean.size(); ++i) {
    normalization.mean[i] = statistics.mean[i] * normalization.scale;
    const double deviation = statistics.standard_deviation[i] * std::abs(normalization.scale);
    normalization.standard_deviation[i] = deviation > 0 && std::isfinite(deviation) ? deviation : 1;
  }
  if (std::string notice = RoundingNotice(statistics, info); !notice.empty()) {
    info.notices.push_back(std::move(notice));
  }
  return absl::OkStatus();
}

// Counts the chosen samples up to the end of each shard. `count_below` returns the number of chosen samples
// with an index below `end`. Leaves shards out that have none.
void ChooseInShards(absl::FunctionRef<int64_t(int64_t end)> count_below, std::vector<int64_t>& ends) {
  std::vector<int64_t> left;
  for (const int64_t end : ends) {
    const int64_t count = count_below(end);
    if (count > (left.empty() ? 0 : left.back())) left.push_back(count);
  }
  ends = std::move(left);
}

}  // namespace

absl::Status Dataset::GatherTargets(absl::Span<const uint32_t> indices, void* targets) const {
  // Gathers in pieces, so that the samples take little memory.
  constexpr int64_t kPieceBytes = int64_t{1} << 20;
  const auto most =
      static_cast<size_t>(std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, sample_bytes())));
  Tensor samples(DType::kUInt8,
                 Shape({static_cast<int64_t>(std::min(most, indices.size())) * sample_bytes()}));
  auto* target = static_cast<uint8_t*>(targets);
  for (size_t begin = 0; begin < indices.size(); begin += most) {
    const absl::Span<const uint32_t> piece = indices.subspan(begin, most);
    TANDEM_RETURN_IF_ERROR(Gather(piece, samples.raw_data(), target));
    target += static_cast<int64_t>(piece.size()) * target_bytes();
  }
  return absl::OkStatus();
}

absl::string_view ToString(SampleType type) {
  switch (type) {
    case SampleType::kBytes:
      return "bytes";
    case SampleType::kFloats:
      return "floats";
    case SampleType::kTokens:
      return "tokens";
  }
  return "nothing";
}

absl::Status DataError(const absl::Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  return absl::DataLossError(status.message());
}

absl::string_view ToString(TargetKind type) {
  switch (type) {
    case TargetKind::kClass:
      return "classes";
    case TargetKind::kValues:
      return "values";
    case TargetKind::kTokens:
      return "tokens";
    case TargetKind::kClassProbabilities:
      return "class probabilities";
  }
  return "nothing";
}

namespace {

absl::StatusOr<DatasetInfo> DeriveOrExplain(const v1::DatasetSpec& spec,
                                            const absl::StatusOr<DatasetInfo>& source,
                                            const DataNames* model) {
  std::vector<int32_t> labels;
  if (source.ok()) return Derive(spec, *source, model, &labels);
  // Reports the faults of the source and of the spec together.
  if (!absl::IsInvalidArgument(source.status())) return source.status();
  FieldViolations violations;
  violations.AddAll("", source.status());
  CheckNumbers(spec, violations);
  return violations.ToStatus();
}

}  // namespace

absl::StatusOr<DatasetInfo> DescribeDataset(const v1::DatasetSpec& spec, const DataNames* model) {
  return DeriveOrExplain(spec, DescribeSource(spec, NamesForSource(spec, model)), model);
}

v1::DatasetSpec SourceAlone(const v1::DatasetSpec& spec) {
  v1::DatasetSpec source = spec;
  source.clear_name();
  source.clear_normalization();
  source.clear_augmentation();
  source.clear_train_limit();
  source.clear_validation_limit();
  if (!SplitsItself(spec)) source.clear_validation_split();
  return source;
}

absl::StatusOr<DatasetInfo> DescribeFromSource(const v1::DatasetSpec& spec,
                                               const absl::StatusOr<DatasetInfo>& source) {
  return DeriveOrExplain(spec, source, /*model=*/nullptr);
}

absl::Status StreamTraining(const v1::DatasetSpec& spec, UseSamples use) {
  TANDEM_ASSIGN_OR_RETURN(const DatasetInfo source,
                          DescribeSource(spec, NamesForSource(spec, /*model=*/nullptr)));
  std::vector<int32_t> labels;
  TANDEM_ASSIGN_OR_RETURN(const DatasetInfo info, Derive(spec, source, /*model=*/nullptr, &labels));
  // Marks the selected samples of the source.
  std::vector<bool> wanted(source.train_samples);
  if (const int64_t validation = SplitOff(spec, source); validation > 0) {
    std::vector<int32_t> classes_of;
    if (spec.validation_split().stratified()) {
      TANDEM_ASSIGN_OR_RETURN(classes_of, SourceLabels(spec, source.train_samples));
    }
    SplitIndices split = Split(spec.validation_split(), source.train_samples, validation, classes_of);
    split.train.resize(info.train_samples);
    for (const uint32_t index : split.train) wanted[index] = true;
  } else {
    std::fill_n(wanted.begin(), info.train_samples, true);
  }
  const int64_t bytes = info.shape.elements() * SizeOf(DTypeOfSamples(info.sample_type));
  return StreamSource(spec, [&](int64_t first, int64_t count, const void* samples, const int32_t* classes) {
    // The reader refuses a file that has grown.
    const int64_t end = std::min(first + count, source.train_samples);
    for (int64_t begin = first; begin < end;) {
      int64_t next = begin + 1;
      while (next < end && wanted[next] == wanted[begin]) ++next;
      if (wanted[begin]) {
        const int64_t skipped = begin - first;
        use(begin, next - begin,
            samples == nullptr ? nullptr : static_cast<const uint8_t*>(samples) + skipped * bytes,
            classes == nullptr ? nullptr : classes + skipped);
      }
      begin = next;
    }
  });
}

absl::StatusOr<OpenedDataset> OpenDataset(const v1::DatasetSpec& spec, const DataNames* model) {
  TANDEM_ASSIGN_OR_RETURN(OpenedDataset source, OpenSource(spec, NamesForSource(spec, model)));
  OpenedDataset opened;
  std::vector<int32_t> labels;
  TANDEM_ASSIGN_OR_RETURN(opened.info, Derive(spec, source.info, model, &labels));
  const int64_t validation = SplitOff(spec, source.info);
  // The classes of the data, since a model may have one class in place of several.
  std::vector<int32_t> classes_of;
  if (validation > 0 && spec.validation_split().stratified()) {
    TANDEM_ASSIGN_OR_RETURN(classes_of, AllLabels(*source.train));
  }
  source.train = Relabel(std::move(source.train), opened.info, labels);
  source.validation = Relabel(std::move(source.validation), opened.info, labels);
  if (validation > 0) {
    SplitIndices split = Split(spec.validation_split(), source.info.train_samples, validation, classes_of);
    split.train.resize(opened.info.train_samples);
    split.validation.resize(opened.info.validation_samples);
    const auto count_below = [&](int64_t end) -> int64_t {
      return std::lower_bound(split.train.begin(), split.train.end(), end) - split.train.begin();
    };
    ChooseInShards(count_below, opened.info.shard_ends);
    const std::shared_ptr<const Dataset> whole = std::move(source.train);
    opened.train = std::make_unique<Subset>(whole, std::move(split.train));
    opened.validation = std::make_unique<Subset>(whole, std::move(split.validation));
  } else {
    const int64_t samples = opened.info.train_samples;
    ChooseInShards([&](int64_t end) { return std::min(end, samples); }, opened.info.shard_ends);
    opened.train = FirstOf(std::move(source.train), opened.info.train_samples);
    opened.validation = FirstOf(std::move(source.validation), opened.info.validation_samples);
  }
  if (spec.normalization().from_data()) {
    TANDEM_RETURN_IF_ERROR(ResolveFromData(*opened.train, opened.info));
  }
  return opened;
}

}  // namespace tandem
