#include "engine/data/formats/idx_dataset.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/formats/idx_file.h"
#include "engine/data/memory_dataset.h"

namespace tandem {
namespace {

// The number of values of a byte.
constexpr int64_t kMostIdxClasses = 256;

constexpr std::array<int64_t, 256> AllNowhere() {
  std::array<int64_t, 256> nowhere = {};
  for (int64_t& index : nowhere) index = -1;
  return nowhere;
}

// A split while its files are read.
struct IdxSplit {
  std::unique_ptr<IdxFile> images;
  std::vector<int32_t> labels;  // If they are kept.
  int64_t label_count = 0;
  // The first position of each label, or -1.
  std::array<int64_t, 256> first = AllNowhere();
  Shape shape;
  int64_t samples = 0;
};

// [samples, height, width] has a single channel.
Shape SampleShape(const Shape& images) {
  if (images.rank() == 3) return Shape({1, images[1], images[2]});
  return Shape({images[1], images[2], images[3]});
}

absl::Status ReadLabels(IdxFile& file, bool keeps, IdxSplit& split) {
  return file.ReadPieces([&](absl::Span<const uint8_t> piece) {
    for (const uint8_t label : piece) {
      if (split.first[label] < 0) split.first[label] = split.label_count;
      ++split.label_count;
    }
    if (keeps) split.labels.insert(split.labels.end(), piece.begin(), piece.end());
  });
}

// Opens a split's files and reads its labels. Keeps the labels if `keeps`. `name` is "train" or "validation".
IdxSplit OpenSplit(absl::string_view name, const std::string& images_path, const std::string& labels_path,
                   bool keeps, FieldViolations& violations) {
  IdxSplit split;
  const std::string images_field = absl::StrCat("idx.", name, "_images");
  const std::string labels_field = absl::StrCat("idx.", name, "_labels");
  if (images_path.empty()) violations.Add(images_field, "is required");
  if (labels_path.empty()) violations.Add(labels_field, absl::StrCat("is required with ", name, "_images"));

  if (!images_path.empty()) {
    absl::StatusOr<std::unique_ptr<IdxFile>> images = IdxFile::Open(images_path, 3, 4, kMaxDatasetBytes);
    absl::Status status = images.status();
    if (status.ok()) {
      split.images = *std::move(images);
      split.shape = SampleShape(split.images->shape());
      split.samples = split.images->shape()[0];
      if (split.samples > kMaxSamples) {
        status = absl::InvalidArgumentError(absl::StrCat(images_path, " holds ", split.samples,
                                                         " samples; at most ", kMaxSamples, " can be read"));
      }
    }
    violations.AddAll(images_field, status);
  }
  if (!labels_path.empty()) {
    absl::StatusOr<std::unique_ptr<IdxFile>> labels = IdxFile::Open(labels_path, 1, 1, kMaxSamples);
    absl::Status status = labels.status();
    if (status.ok()) status = ReadLabels(**labels, keeps, split);
    // The number of labels of a truncated file is unknown.
    if (!status.ok()) split.label_count = 0;
    violations.AddAll(labels_field, status);
  }
  if (split.images != nullptr && split.label_count > 0 && split.samples != split.label_count) {
    violations.Add(labels_field, absl::StrCat(labels_path, " holds ", split.label_count, " labels, but ",
                                              images_path, " holds ", split.samples, " images"));
  }
  return split;
}

int64_t HeldBytes(const IdxSplit& split) {
  const int64_t images = split.images == nullptr ? 0 : split.images->shape().elements();
  return images + split.label_count * static_cast<int64_t>(sizeof(int32_t));
}

void CheckLabels(absl::string_view name, const std::string& path, const IdxSplit& split, int64_t classes,
                 FieldViolations& violations) {
  int64_t label = -1;
  for (int64_t i = std::min<int64_t>(classes, 256); i < 256; ++i) {
    if (split.first[i] >= 0 && (label < 0 || split.first[i] < split.first[label])) label = i;
  }
  if (label < 0) return;
  violations.Add(absl::StrCat("idx.", name, "_labels"),
                 absl::StrCat(path, " holds label ", label, " at index ", split.first[label],
                              ", outside the ", classes, " classes (0 to ", classes - 1, ")"));
}

// Reads everything except the images' elements.
absl::StatusOr<DatasetInfo> OpenSplits(const v1::IdxSource& source, bool keeps, IdxSplit& train,
                                       IdxSplit& validation) {
  FieldViolations violations;
  train = OpenSplit("train", source.train_images(), source.train_labels(), keeps, violations);
  const bool validates = !source.validation_images().empty() || !source.validation_labels().empty();
  if (validates) {
    validation =
        OpenSplit("validation", source.validation_images(), source.validation_labels(), keeps, violations);
  }
  DatasetInfo info{.shape = train.shape,
                   .classes = source.classes(),
                   .train_samples = train.samples,
                   .validation_samples = validation.samples,
                   .memory_bytes = HeldBytes(train) + HeldBytes(validation)};
  if (source.classes() < 0 || source.classes() == 1 || source.classes() > kMostIdxClasses) {
    violations.Add("idx.classes",
                   absl::StrCat("is ", source.classes(), "; labels are bytes: it must be from 2 to ",
                                kMostIdxClasses, ", or left out"));
  } else {
    info.one_label = std::count_if(std::begin(train.first), std::end(train.first),
                                   [](int64_t first) { return first >= 0; }) == 1;
    for (int64_t label = 0; source.classes() == 0 && label < 256; ++label) {
      if (train.first[label] >= 0) info.classes = 1 + label;
    }
    if (info.classes > 0) {
      CheckLabels("train", source.train_labels(), train, info.classes, violations);
      CheckLabels("validation", source.validation_labels(), validation, info.classes, violations);
    }
  }
  if (train.images != nullptr && validation.images != nullptr && train.shape != validation.shape) {
    violations.Add("idx.validation_images",
                   absl::StrCat("has samples of shape ", validation.shape.ToString(),
                                ", but those of train_images are ", train.shape.ToString()));
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return info;
}

// Turns an error into an error of a split's images.
absl::Status OfImages(absl::string_view name, const absl::Status& status) {
  return UnderField(absl::StrCat("idx.", name, "_images"), status);
}

absl::StatusOr<std::unique_ptr<const Dataset>> ReadSplit(absl::string_view name, IdxSplit split) {
  absl::StatusOr<std::vector<uint8_t>> images = split.images->ReadAll();
  if (!images.ok()) return OfImages(name, images.status());
  return std::make_unique<MemoryDataset>(split.shape.elements(), *std::move(images), sizeof(int32_t),
                                         BytesOf(split.labels));
}

}  // namespace

absl::Status StreamIdx(const v1::IdxSource& source, UseSamples use) {
  IdxSplit train, validation;
  TANDEM_RETURN_IF_ERROR(OpenSplits(source, /*keeps=*/true, train, validation).status());
  const int64_t bytes = train.shape.elements();
  std::vector<uint8_t> samples;  // Whole samples, and the beginning of the next.
  int64_t first = 0;
  return OfImages("train", train.images->ReadPieces([&](absl::Span<const uint8_t> piece) {
    samples.insert(samples.end(), piece.begin(), piece.end());
    const int64_t count = static_cast<int64_t>(samples.size()) / bytes;
    if (count == 0) return;
    use(first, count, samples.data(), train.labels.data() + first);
    samples.erase(samples.begin(), samples.begin() + count * bytes);
    first += count;
  }));
}

absl::StatusOr<DatasetInfo> DescribeIdx(const v1::IdxSource& source) {
  IdxSplit train, validation;
  TANDEM_ASSIGN_OR_RETURN(const DatasetInfo info, OpenSplits(source, /*keeps=*/false, train, validation));
  FieldViolations violations;
  violations.AddAll("idx.train_images", train.images->CheckLength());
  if (validation.images != nullptr) {
    violations.AddAll("idx.validation_images", validation.images->CheckLength());
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return info;
}

absl::StatusOr<OpenedDataset> OpenIdx(const v1::IdxSource& source) {
  IdxSplit train, validation;
  OpenedDataset opened;
  TANDEM_ASSIGN_OR_RETURN(opened.info, OpenSplits(source, /*keeps=*/true, train, validation));
  TANDEM_ASSIGN_OR_RETURN(opened.train, ReadSplit("train", std::move(train)));
  if (validation.images != nullptr) {
    TANDEM_ASSIGN_OR_RETURN(opened.validation, ReadSplit("validation", std::move(validation)));
  }
  return opened;
}

}  // namespace tandem
