#include "engine/data/formats/webdataset.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "engine/data/formats/bad_images.h"
#include "engine/data/formats/image_file.h"
#include "engine/data/formats/shard_index.h"
#include "engine/data/parallel.h"
#include "proto/data_folder/shards.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxSampleSide = 1 << 14;
constexpr int64_t kDefaultShuffleBuffer = 10000;
// The bytes of a picture in which a header is searched, first and then.
constexpr int64_t kSampleHeaderBytes[] = {1 << 12, 1 << 16, kMaxShardPictureBytes};
// The largest split, in bytes of its pictures, that is decoded whole when it is described.
constexpr int64_t kCheckedShardBytes = int64_t{32} << 20;
// The fewest bytes of pictures for which a thread is started.
constexpr int64_t kThreadBytes = 1 << 16;
// The number of pictures that a thread examines one after the other.
constexpr int64_t kPiecePictures = 16;
// The bytes of decoded pictures that are streamed together.
constexpr int64_t kStreamedShardBytes = int64_t{16} << 20;
constexpr size_t kNamedMemberEndings = 5;

// The shards of a split.
struct ShardSplit {
  std::string field;   // "webdataset.train"
  std::string folder;  // The folder of all shards, with the slash at its end.
  std::vector<ShardIndex> shards;
  std::vector<int64_t> ends;  // The number of samples in the shards up to each shard.

  int64_t size() const { return ends.empty() ? 0 : ends.back(); }
  size_t ShardOf(int64_t index) const {
    return std::upper_bound(ends.begin(), ends.end(), index) - ends.begin();
  }
  const ShardSample& SampleIn(size_t shard, int64_t index) const {
    return shards[shard].samples[index - (shard == 0 ? 0 : ends[shard - 1])];
  }
  // Returns the bytes of all pictures.
  int64_t picture_bytes() const {
    int64_t bytes = 0;
    for (const ShardIndex& shard : shards) {
      for (const ShardSample& sample : shard.samples) bytes += sample.picture_bytes;
    }
    return bytes;
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
    violations.Add("webdataset.train", "is required; give a shard, a folder with shards, or a pattern");
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

absl::Status IndexShards(const std::string& path, ShardSplit& split) {
  const absl::StatusOr<std::vector<std::string>> paths = ListShards(path);
  if (!paths.ok()) return FieldError(split.field, paths.status().message());
  std::error_code ignored;
  split.folder = fs::is_directory(path, ignored) ? absl::StrCat(absl::StripSuffix(path, "/"), "/")
                                                 : std::string(FolderOfPattern(path));
  split.shards.resize(paths->size());
  const auto read = [&](size_t i) -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(split.shards[i], ReadShardIndex((*paths)[i]));
    return absl::OkStatus();
  };
  for (const absl::Status& status : ReadAll(paths->size(), read)) {
    if (absl::IsInvalidArgument(status)) return FieldError(split.field, status.message());
    TANDEM_RETURN_IF_ERROR(status);
  }
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

// Returns the fault of a picture with the picture's name. Errors of a shard's file already name the shard.
ImageFault FaultOf(const ShardIndex& shard, const ShardSample& sample, const absl::Status& status) {
  const absl::string_view fault = status.message();
  if (absl::StartsWith(fault, shard.path)) return {"", std::string(fault)};
  return {ShownPicture(shard, sample), absl::StrCat(" ", fault)};
}

// The functions below return INVALID_ARGUMENT as FaultOf takes it, without the picture's name. To find a
// name, the shard is read again.

// `needs_size`: the header's height and width are needed.
absl::StatusOr<Image> ReadSampleHeader(const ShardIndex& shard, const ShardSample& sample, bool needs_size) {
  for (const int64_t most : kSampleHeaderBytes) {
    TANDEM_ASSIGN_OR_RETURN(const std::string begin, ReadShardPicture(shard, sample, most));
    absl::StatusOr<Image> header = ReadImageHeader(begin);
    const bool is_enough = header.ok() && !(needs_size && header->may_turn);
    if (is_enough || static_cast<int64_t>(begin.size()) == sample.picture_bytes) return header;
  }
  return absl::InternalError("a picture is longer than a picture may be");
}

// Decodes a picture, and returns its header.
absl::StatusOr<Image> CheckSample(const ShardIndex& shard, const ShardSample& sample) {
  TANDEM_ASSIGN_OR_RETURN(const std::string content, ReadShardPicture(shard, sample, kMaxShardPictureBytes));
  TANDEM_ASSIGN_OR_RETURN(Image header, ReadImageHeader(content));
  TANDEM_RETURN_IF_ERROR(DecodeImage(content).status());
  return header;
}

// Writes the pixels of a sample.
absl::Status DecodeInto(const ShardIndex& shard, const ShardSample& sample, const SampleForm& form,
                        uint8_t* pixels) {
  TANDEM_ASSIGN_OR_RETURN(const std::string content, ReadShardPicture(shard, sample, kMaxShardPictureBytes));
  return DecodeSample(
      content,
      {.channels = form.shape[0], .height = form.shape[1], .width = form.shape[2], .resize = form.resize},
      pixels);
}

// A picture by its number in the split.
struct SizedPicture {
  int64_t index = 0;
  int64_t height = 0;
  int64_t width = 0;

  bool HasSizeOf(const SizedPicture& other) const { return height == other.height && width == other.width; }
};

// The pictures of a split, or of a piece of it.
struct ExaminedPictures {
  std::optional<SizedPicture> first;                  // The first good picture.
  std::optional<SizedPicture> other;                  // The first picture of another size than `first`.
  bool grey = true;                                   // All good pictures are grey.
  std::vector<std::pair<int64_t, absl::Status>> bad;  // The numbers of the bad pictures, in order.

  // Adds the pictures behind these.
  void Append(ExaminedPictures next) {
    std::move(next.bad.begin(), next.bad.end(), std::back_inserter(bad));
    grey = grey && next.grey;
    if (!first.has_value()) {
      first = next.first;
      other = next.other;
    } else if (!other.has_value() && next.first.has_value()) {
      other = next.first->HasSizeOf(*first) ? next.other : next.first;
    }
  }
};

// Calls `read` for `count` pictures from number `first` on, on several threads. `read` returns a picture's
// header, or INVALID_ARGUMENT for a bad picture. Returns the first other error.
absl::StatusOr<ExaminedPictures> Examine(
    const ShardSplit& split, int64_t first, int64_t count,
    absl::FunctionRef<absl::StatusOr<Image>(const ShardIndex&, const ShardSample&, int64_t index)> read) {
  std::vector<ExaminedPictures> pieces((count + kPiecePictures - 1) / kPiecePictures);
  const auto examine = [&](size_t piece) -> absl::Status {
    const int64_t begin = first + static_cast<int64_t>(piece) * kPiecePictures;
    const int64_t end = std::min(begin + kPiecePictures, first + count);
    for (int64_t i = begin; i < end; ++i) {
      const size_t shard = split.ShardOf(i);
      const absl::StatusOr<Image> header = read(split.shards[shard], split.SampleIn(shard, i), i);
      ExaminedPictures one;
      if (header.ok()) {
        one.first = SizedPicture{.index = i, .height = header->height, .width = header->width};
        one.grey = header->channels == 1;
      } else if (absl::IsInvalidArgument(header.status())) {
        one.bad.emplace_back(i, header.status());
      } else {
        return header.status();
      }
      pieces[piece].Append(std::move(one));
    }
    return absl::OkStatus();
  };
  for (const absl::Status& status : RunInParallel(pieces.size(), examine)) TANDEM_RETURN_IF_ERROR(status);
  ExaminedPictures all;
  for (ExaminedPictures& piece : pieces) all.Append(std::move(piece));
  return all;
}

// Returns the bad pictures among `count` examined pictures.
BadImages BadOf(const ShardSplit& split, int64_t count, const ExaminedPictures& pictures) {
  BadImages bad;
  bad.field = split.field;
  bad.folder = split.folder;
  bad.images = count;
  bad.bad = pictures.bad.size();
  for (const auto& [index, status] : pictures.bad) {
    if (bad.first.size() == kNamedImages) break;
    const size_t shard = split.ShardOf(index);
    bad.first.push_back(FaultOf(split.shards[shard], split.SampleIn(shard, index), status));
  }
  return bad;
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
      const ShardIndex& shard = split.shards[shards[i]];
      const ShardSample& sample = split.SampleIn(shards[i], indices[i]);
      absl::Status status =
          DecodeInto(shard, sample, form, pixels + static_cast<int64_t>(i) * form.shape.elements());
      if (absl::IsInvalidArgument(status)) {
        const ImageFault fault = FaultOf(shard, sample, status);
        status = absl::InvalidArgumentError(fault.path + fault.fault);
      }
      TANDEM_RETURN_IF_ERROR(std::move(status));
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
  ShardSplit train{.field = "webdataset.train", .folder = {}, .shards = {}, .ends = {}};
  ShardSplit validation{.field = "webdataset.validation", .folder = {}, .shards = {}, .ends = {}};
};

// Checks that all pictures of a split have the size of the first training picture.
absl::Status CheckOneSize(const ShardSplit& split, const ExaminedPictures& pictures,
                          const SizedPicture& first) {
  if (!pictures.first.has_value()) return absl::OkStatus();
  const std::optional<SizedPicture> other =
      pictures.first->HasSizeOf(first) ? pictures.other : pictures.first;
  if (!other.has_value()) return absl::OkStatus();
  const size_t shard = split.ShardOf(other->index);
  return FieldError(
      split.field,
      absl::StrCat(ShownPicture(split.shards[shard], split.SampleIn(shard, other->index)), " has ",
                   other->height, " x ", other->width,
                   " pixels (height x width), but the first training picture has ", first.height, " x ",
                   first.width, "; give webdataset.height and width to bring all pictures to one size"));
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
  const bool needs_grey = source.channels() == 0;
  ExaminedPictures training, validation;
  std::vector<BadImages> bad;
  for (const ShardSplit* split : {&shards.train, &shards.validation}) {
    const bool decodes = checks && split->picture_bytes() <= kCheckedShardBytes;
    const bool is_training = split == &shards.train;
    if (is_resized && !decodes && !(is_training && needs_grey)) continue;
    const auto read = [&](const ShardIndex& shard, const ShardSample& sample, int64_t /*index*/) {
      return decodes ? CheckSample(shard, sample) : ReadSampleHeader(shard, sample, !is_resized);
    };
    TANDEM_ASSIGN_OR_RETURN(ExaminedPictures pictures, Examine(*split, 0, split->size(), read));
    bad.push_back(BadOf(*split, split->size(), pictures));
    (is_training ? training : validation) = std::move(pictures);
  }
  TANDEM_RETURN_IF_ERROR(BadImagesStatus(bad));
  if (!is_resized) {
    TANDEM_RETURN_IF_ERROR(CheckOneSize(shards.train, training, *training.first));
    TANDEM_RETURN_IF_ERROR(CheckOneSize(shards.validation, validation, *training.first));
  }
  for (const ShardSplit* split : {&shards.train, &shards.validation}) AddSkippedNotice(*split, info.notices);
  info.shape = Shape({source.channels() != 0 ? source.channels()
                      : training.grey        ? 1
                                             : 3,
                      is_resized ? source.height() : training.first->height,
                      is_resized ? source.width() : training.first->width});
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

// Returns the SHA-256 of the labels, positions and lengths of all pictures.
absl::StatusOr<std::string> DigestSamples(const FoundShards& shards) {
  static_assert(sizeof(ShardSample) == 16, "the bytes between the members of a sample are undefined");
  Sha256 all;
  for (const ShardSplit* split : {&shards.train, &shards.validation}) {
    for (const ShardIndex& shard : split->shards) {
      const std::vector<ShardSample>& samples = shard.samples;
      all.Add(absl::StrCat(split->field, " ", samples.size(), "\n"));
      all.Add({reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(ShardSample)});
    }
  }
  return all.Finish();
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
  TANDEM_ASSIGN_OR_RETURN(shards.info.samples_sha256, DigestSamples(shards));
  opened.info = std::move(shards.info);
  const SampleForm form = {.shape = opened.info.shape, .resize = source.resize()};
  opened.train = std::make_unique<ShardDataset>(std::move(shards.train), form);
  if (shards.validation.size() > 0) {
    opened.validation = std::make_unique<ShardDataset>(std::move(shards.validation), form);
  }
  return opened;
}

absl::StatusOr<std::vector<int32_t>> WebDatasetLabels(const v1::WebDatasetSource& source) {
  ShardSplit train{.field = "webdataset.train", .folder = {}, .shards = {}, .ends = {}};
  TANDEM_RETURN_IF_ERROR(IndexShards(source.train(), train));
  std::vector<int32_t> labels;
  for (const ShardIndex& shard : train.shards) {
    for (const ShardSample& sample : shard.samples) labels.push_back(sample.label);
  }
  return labels;
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
    const auto count = static_cast<int64_t>(indices.size());
    const auto decode = [&](const ShardIndex& shard, const ShardSample& sample,
                            int64_t index) -> absl::StatusOr<Image> {
      TANDEM_RETURN_IF_ERROR(DecodeInto(shard, sample, form, pixels.data() + (index - first) * bytes));
      return Image();
    };
    TANDEM_ASSIGN_OR_RETURN(const ExaminedPictures pictures, Examine(shards.train, first, count, decode));
    TANDEM_RETURN_IF_ERROR(BadImagesStatus({BadOf(shards.train, count, pictures)}));
    use(first, count, pixels.data(), labels.data());
  }
  return absl::OkStatus();
}

}  // namespace tandem
