#include "engine/data/formats/webdataset.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/formats/image_file.h"
#include "engine/data/formats/shard_index.h"
#include "engine/data/parallel.h"
#include "proto/data_folder/shards.h"

namespace tandem {
namespace {

constexpr int64_t kMaxSampleSide = 1 << 14;
constexpr int64_t kDefaultShuffleBuffer = 10000;
// The bytes of a picture in which a header is searched, first and then.
constexpr int64_t kSampleHeaderBytes[] = {1 << 12, 1 << 16, kMaxShardPictureBytes};
// The largest split, in bytes of its pictures, that is decoded whole when it is described.
constexpr int64_t kCheckedShardBytes = int64_t{32} << 20;
// The fewest bytes of pictures for which a thread is started.
constexpr int64_t kThreadBytes = 1 << 16;
// The bytes of decoded pictures that are streamed together.
constexpr int64_t kStreamedShardBytes = int64_t{16} << 20;
constexpr size_t kNamedMemberEndings = 5;

// The shards of a split.
struct ShardSplit {
  std::string field;  // "webdataset.train"
  std::vector<ShardIndex> shards;
  std::vector<int64_t> ends;  // The number of samples in the shards up to each shard.

  int64_t size() const { return ends.empty() ? 0 : ends.back(); }
  size_t ShardOf(int64_t index) const {
    return std::upper_bound(ends.begin(), ends.end(), index) - ends.begin();
  }
  const ShardSample& SampleIn(size_t shard, int64_t index) const {
    return shards[shard].samples[index - (shard == 0 ? 0 : ends[shard - 1])];
  }
};

// The form of decoded samples.
struct SampleForm {
  Shape shape;
  v1::ImageResize resize;
};

absl::Status CheckShardSource(const v1::WebDatasetSource& source) {
  FieldViolations violations;
  if (source.train().empty()) {
    violations.Add("webdataset.train", "is required: a shard, a folder with shards, or a pattern");
  }
  for (const auto& [field, side] :
       {std::pair("webdataset.height", source.height()), std::pair("webdataset.width", source.width())}) {
    if (side < 0 || side > kMaxSampleSide) {
      violations.Add(field,
                     absl::StrCat("is ", side, "; it must be from 1 to ", kMaxSampleSide, ", or left out"));
    }
  }
  if ((source.height() == 0) != (source.width() == 0)) {
    violations.Add(source.height() == 0 ? "webdataset.height" : "webdataset.width",
                   "is missing; give both height and width, or neither");
  }
  if (source.channels() != 0 && source.channels() != 1 && source.channels() != 3) {
    violations.Add("webdataset.channels", absl::StrCat("is ", source.channels(), "; it must be 1 or 3"));
  }
  if (source.classes() < 0) {
    violations.Add("webdataset.classes", absl::StrCat("is ", source.classes(), "; it must not be negative"));
  }
  if (source.shuffle_buffer() < 0 || source.shuffle_buffer() > kMaxSamples) {
    violations.Add("webdataset.shuffle_buffer",
                   absl::StrCat("is ", source.shuffle_buffer(), "; it must be from 1 to ", kMaxSamples,
                                ", or left out"));
  }
  return violations.ToStatus();
}

// Returns the first error. Puts the field before the errors of shards and pictures.
absl::Status FirstShardError(const std::string& field, const std::vector<absl::Status>& statuses) {
  for (const absl::Status& status : statuses) {
    if (status.ok()) continue;
    return absl::IsInvalidArgument(status) ? FieldError(field, status.message()) : status;
  }
  return absl::OkStatus();
}

absl::Status IndexShards(const std::string& path, ShardSplit& split) {
  const absl::StatusOr<std::vector<std::string>> paths = ListShards(path);
  if (!paths.ok()) return FieldError(split.field, paths.status().message());
  split.shards.resize(paths->size());
  TANDEM_RETURN_IF_ERROR(
      FirstShardError(split.field, RunInParallel(paths->size(), [&](size_t i) -> absl::Status {
                        TANDEM_ASSIGN_OR_RETURN(split.shards[i], ReadShardIndex((*paths)[i]));
                        return absl::OkStatus();
                      })));
  int64_t samples = 0;
  for (ShardIndex& shard : split.shards) {
    shard.samples.shrink_to_fit();
    samples += static_cast<int64_t>(shard.samples.size());
    split.ends.push_back(samples);
  }
  if (samples <= kMaxSamples) return absl::OkStatus();
  return FieldError(split.field,
                    absl::StrCat("has ", samples, " samples; at most ", kMaxSamples, " are read"));
}

absl::Status WithShardPicture(const ShardIndex& shard, const ShardSample& sample,
                              const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(ShownPicture(shard, sample), " ", status.message()));
}

absl::StatusOr<Image> ReadSampleHeader(const ShardIndex& shard, const ShardSample& sample) {
  for (const int64_t most : kSampleHeaderBytes) {
    TANDEM_ASSIGN_OR_RETURN(const std::string begin, ReadShardPicture(shard, sample, most));
    absl::StatusOr<Image> header = ReadImageHeader(begin);
    if (header.ok()) return header;
    if (static_cast<int64_t>(begin.size()) == sample.picture_bytes) {
      return WithShardPicture(shard, sample, header.status());
    }
  }
  return absl::InternalError("a picture is longer than a picture may be");
}

absl::StatusOr<Image> DecodeSample(const ShardIndex& shard, const ShardSample& sample) {
  TANDEM_ASSIGN_OR_RETURN(const std::string content, ReadShardPicture(shard, sample, kMaxShardPictureBytes));
  absl::StatusOr<Image> image = DecodeImage(content);
  if (!image.ok()) return WithShardPicture(shard, sample, image.status());
  return image;
}

// Writes the pixels of a sample.
absl::Status DecodeInto(const ShardIndex& shard, const ShardSample& sample, const SampleForm& form,
                        uint8_t* pixels) {
  TANDEM_ASSIGN_OR_RETURN(Image image, DecodeSample(shard, sample));
  image =
      ResizeImage(ConvertImage(std::move(image), form.shape[0]), form.shape[1], form.shape[2], form.resize);
  CopyPlanes(image, pixels);
  return absl::OkStatus();
}

// Decodes the pictures on as many threads as their bytes are worth.
absl::Status DecodeSamples(const ShardSplit& split, const SampleForm& form,
                           absl::Span<const uint32_t> indices, uint8_t* pixels) {
  std::vector<size_t> shards(indices.size());
  int64_t bytes = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    shards[i] = split.ShardOf(indices[i]);
    bytes += split.SampleIn(shards[i], indices[i]).picture_bytes;
  }
  const size_t pieces = std::clamp<size_t>(bytes / kThreadBytes, 1, std::max<size_t>(1, indices.size()));
  const auto decode = [&](size_t piece) -> absl::Status {
    for (size_t i = piece; i < indices.size(); i += pieces) {
      TANDEM_RETURN_IF_ERROR(DecodeInto(split.shards[shards[i]], split.SampleIn(shards[i], indices[i]), form,
                                        pixels + static_cast<int64_t>(i) * form.shape.elements()));
    }
    return absl::OkStatus();
  };
  for (absl::Status& status : RunInParallel(pieces, decode)) TANDEM_RETURN_IF_ERROR(std::move(status));
  return absl::OkStatus();
}

void CopyShardLabels(const ShardSplit& split, absl::Span<const uint32_t> indices, int32_t* labels) {
  for (const uint32_t index : indices) *labels++ = split.SampleIn(split.ShardOf(index), index).label;
}

// Samples that stay in their shards.
class ShardDataset final : public Dataset {
 public:
  ShardDataset(ShardSplit split, SampleForm form) : split_(std::move(split)), form_(std::move(form)) {}

  int64_t size() const override { return split_.size(); }
  int64_t sample_bytes() const override { return form_.shape.elements(); }
  int64_t target_bytes() const override { return sizeof(int32_t); }
  absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    CopyShardLabels(split_, indices, static_cast<int32_t*>(targets));
    return DecodeSamples(split_, form_, indices, static_cast<uint8_t*>(samples));
  }
  absl::Status GatherTargets(absl::Span<const uint32_t> indices, void* targets) const override {
    CopyShardLabels(split_, indices, static_cast<int32_t*>(targets));
    return absl::OkStatus();
  }

 private:
  const ShardSplit split_;
  const SampleForm form_;
};

struct FoundShards {
  DatasetInfo info;
  ShardSplit train{.field = "webdataset.train", .shards = {}, .ends = {}};
  ShardSplit validation{.field = "webdataset.validation", .shards = {}, .ends = {}};
};

// The size and the channels of a split's pictures.
struct PictureSizes {
  int64_t height = 0;
  int64_t width = 0;
  bool grey = true;
};

// Reads the headers of all pictures. If `fixed` is given, all pictures must have its size.
absl::StatusOr<PictureSizes> FindSizes(const ShardSplit& split, bool is_resized, const PictureSizes* fixed) {
  std::vector<uint8_t> grey(split.shards.size());
  PictureSizes sizes;
  if (fixed != nullptr) {
    sizes = *fixed;
  } else {
    const absl::StatusOr<Image> first = ReadSampleHeader(split.shards[0], split.shards[0].samples[0]);
    TANDEM_RETURN_IF_ERROR(FirstShardError(split.field, {first.status()}));
    sizes.height = first->height;
    sizes.width = first->width;
  }
  const auto read = [&](size_t i) -> absl::Status {
    const ShardIndex& shard = split.shards[i];
    grey[i] = 1;
    for (const ShardSample& sample : shard.samples) {
      TANDEM_ASSIGN_OR_RETURN(const Image header, ReadSampleHeader(shard, sample));
      if (header.channels != 1) grey[i] = 0;
      if (is_resized || (header.height == sizes.height && header.width == sizes.width)) continue;
      return WithShardPicture(
          shard, sample,
          absl::InvalidArgumentError(absl::StrCat(
              "has ", header.height, " x ", header.width,
              " pixels (height x width), but the first picture has ", sizes.height, " x ", sizes.width,
              "; give webdataset.height and width to bring all pictures to one size")));
    }
    return absl::OkStatus();
  };
  TANDEM_RETURN_IF_ERROR(FirstShardError(split.field, RunInParallel(split.shards.size(), read)));
  sizes.grey = std::all_of(grey.begin(), grey.end(), [](uint8_t one) { return one != 0; });
  return sizes;
}

// Decodes the pictures of a split with few bytes, so that a bad picture is reported early.
absl::Status CheckShardPictures(const ShardSplit& split) {
  int64_t bytes = 0;
  for (const ShardIndex& shard : split.shards) {
    for (const ShardSample& sample : shard.samples) bytes += sample.picture_bytes;
  }
  if (bytes > kCheckedShardBytes) return absl::OkStatus();
  return FirstShardError(
      split.field, RunInParallel(split.size(), [&](size_t i) {
        const size_t shard = split.ShardOf(static_cast<int64_t>(i));
        return DecodeSample(split.shards[shard], split.SampleIn(shard, static_cast<int64_t>(i))).status();
      }));
}

void AddSkippedNotice(const ShardSplit& split, std::vector<std::string>& notices) {
  std::map<std::string, int64_t> skipped;
  int64_t members = 0;
  for (const ShardIndex& shard : split.shards) {
    for (const auto& [ending, count] : shard.skipped) {
      skipped[ending] += count;
      members += count;
    }
  }
  if (members == 0) return;
  std::vector<std::pair<int64_t, std::string>> kinds;
  for (const auto& [ending, count] : skipped) kinds.emplace_back(-count, ending);
  std::sort(kinds.begin(), kinds.end());
  std::vector<std::string> parts;
  int64_t others = members;
  for (const auto& [negative, ending] : kinds) {
    if (parts.size() == kNamedMemberEndings) break;
    parts.push_back(absl::StrCat(-negative, " ", ending));
    others += negative;
  }
  if (others > 0) parts.push_back(absl::StrCat(others, " others"));
  notices.push_back(absl::StrCat(split.field, ": skipped ", members,
                                 members == 1 ? " member that is" : " members that are",
                                 " neither picture nor label: ", absl::StrJoin(parts, ", ")));
}

// Sets the number of classes. INVALID_ARGUMENT for a label that is not below it.
absl::Status CountLabels(int64_t classes, FoundShards& shards) {
  DatasetInfo& info = shards.info;
  int32_t largest = 0;
  const int32_t first = shards.train.shards[0].samples[0].label;
  info.one_label = true;
  for (const ShardIndex& shard : shards.train.shards) {
    for (const ShardSample& sample : shard.samples) {
      largest = std::max(largest, sample.label);
      info.one_label = info.one_label && sample.label == first;
    }
  }
  info.classes = classes != 0 ? classes : int64_t{largest} + 1;
  for (const ShardSplit* split : {&shards.train, &shards.validation}) {
    for (const ShardIndex& shard : split->shards) {
      for (const ShardSample& sample : shard.samples) {
        if (sample.label < info.classes) continue;
        return FieldError(
            split->field,
            absl::StrCat(ShownPicture(shard, sample), " has the label ", sample.label, ", but ",
                         classes != 0 ? "webdataset.classes is " : "the training labels are below ",
                         info.classes, "; labels count from 0"));
      }
    }
  }
  return absl::OkStatus();
}

// `checks` tells whether pictures of small splits are decoded.
absl::StatusOr<FoundShards> LookIntoShards(const v1::WebDatasetSource& source, bool checks) {
  TANDEM_RETURN_IF_ERROR(CheckShardSource(source));
  FoundShards shards;
  TANDEM_RETURN_IF_ERROR(IndexShards(source.train(), shards.train));
  if (!source.validation().empty())
    TANDEM_RETURN_IF_ERROR(IndexShards(source.validation(), shards.validation));
  DatasetInfo& info = shards.info;
  TANDEM_RETURN_IF_ERROR(CountLabels(source.classes(), shards));
  const bool is_resized = source.height() != 0;
  PictureSizes sizes;
  if (!is_resized || source.channels() == 0) {
    TANDEM_ASSIGN_OR_RETURN(sizes, FindSizes(shards.train, is_resized, /*fixed=*/nullptr));
    if (!is_resized && shards.validation.size() > 0) {
      TANDEM_RETURN_IF_ERROR(FindSizes(shards.validation, is_resized, &sizes).status());
    }
  }
  for (const ShardSplit* split : {&shards.train, &shards.validation}) {
    if (checks) TANDEM_RETURN_IF_ERROR(CheckShardPictures(*split));
    AddSkippedNotice(*split, info.notices);
  }
  info.shape =
      Shape({source.channels() != 0 ? source.channels()
             : sizes.grey           ? 1
                                    : 3,
             is_resized ? source.height() : sizes.height, is_resized ? source.width() : sizes.width});
  info.train_samples = shards.train.size();
  info.validation_samples = shards.validation.size();
  info.stays_in_files = true;
  info.shard_ends = shards.train.ends;
  info.shuffle_buffer = source.shuffle_buffer() == 0 ? kDefaultShuffleBuffer : source.shuffle_buffer();
  info.memory_bytes =
      (info.train_samples + info.validation_samples) * static_cast<int64_t>(sizeof(ShardSample));
  for (const ShardSplit* split : {&shards.train, &shards.validation}) {
    for (const ShardIndex& shard : split->shards) {
      info.memory_bytes += static_cast<int64_t>(sizeof(ShardIndex) + 2 * sizeof(int64_t) + shard.path.size());
    }
  }
  return shards;
}

}  // namespace

absl::StatusOr<DatasetInfo> DescribeWebDataset(const v1::WebDatasetSource& source) {
  TANDEM_ASSIGN_OR_RETURN(FoundShards shards, LookIntoShards(source, /*checks=*/true));
  shards.info.shard_ends.clear();
  shards.info.shuffle_buffer = 0;
  return std::move(shards.info);
}

absl::StatusOr<OpenedDataset> OpenWebDataset(const v1::WebDatasetSource& source) {
  TANDEM_ASSIGN_OR_RETURN(FoundShards shards, LookIntoShards(source, /*checks=*/false));
  OpenedDataset opened;
  opened.info = std::move(shards.info);
  const SampleForm form = {.shape = opened.info.shape, .resize = source.resize()};
  opened.train = std::make_unique<ShardDataset>(std::move(shards.train), form);
  if (shards.validation.size() > 0) {
    opened.validation = std::make_unique<ShardDataset>(std::move(shards.validation), form);
  }
  return opened;
}

absl::Status StreamWebDataset(const v1::WebDatasetSource& source, UseSamples use) {
  TANDEM_ASSIGN_OR_RETURN(const FoundShards shards, LookIntoShards(source, /*checks=*/false));
  const SampleForm form = {.shape = shards.info.shape, .resize = source.resize()};
  const int64_t bytes = form.shape.elements();
  const int64_t at_once = std::max<int64_t>(1, kStreamedShardBytes / std::max<int64_t>(1, bytes));
  std::vector<uint8_t> pixels(at_once * bytes);
  std::vector<int32_t> labels(at_once);
  for (int64_t first = 0; first < shards.train.size(); first += at_once) {
    std::vector<uint32_t> indices(std::min(at_once, shards.train.size() - first));
    std::iota(indices.begin(), indices.end(), static_cast<uint32_t>(first));
    CopyShardLabels(shards.train, indices, labels.data());
    TANDEM_RETURN_IF_ERROR(
        FirstShardError(shards.train.field, {DecodeSamples(shards.train, form, indices, pixels.data())}));
    use(first, static_cast<int64_t>(indices.size()), pixels.data(), labels.data());
  }
  return absl::OkStatus();
}

}  // namespace tandem
