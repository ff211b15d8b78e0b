#include "engine/data/formats/image_folder_dataset.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/data/formats/bad_images.h"
#include "engine/data/formats/image_file.h"
#include "engine/data/formats/picture_tree.h"
#include "engine/data/memory_dataset.h"
#include "proto/data_folder/data_folder.h"
#include "proto/data_folder/shards.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxSide = 1 << 14;
constexpr int64_t kMaxFileBytes = int64_t{1} << 28;
// The bytes of a file in which a header is first searched.
constexpr int64_t kHeaderBytes = 1 << 16;
// The largest set, in bytes, that is decoded whole when it is described.
constexpr int64_t kCheckedBytes = int64_t{32} << 20;
// The bytes of images that are decoded together, if they are not kept.
constexpr size_t kStreamedImageBytes = size_t{16} << 20;
// The most endings of skipped files that are named.
constexpr size_t kNamedEndings = 5;

struct Entry {
  size_t file = 0;  // In the tree's files.
  int32_t label = 0;
  Image header;
};

// A folder in a tree: the tree itself, or a part of a data set.
struct Place {
  std::shared_ptr<const PictureTree> tree;
  std::string prefix;  // "", or with a slash at the end: "train/".

  std::string Shown() const { return tree->Shown(absl::StripSuffix(prefix, "/")); }
};

// Skipped files: how many have each ending, such as ".heic".
using SkippedFiles = std::map<std::string, int64_t>;

struct FolderSplit {
  std::string field;  // "image_folder.train"
  Place place;
  std::vector<Entry> entries;
  SkippedFiles skipped;
  int64_t outside_classes = 0;  // Images beside the folders of classes.

  const PictureTree::File& FileOf(const Entry& entry) const { return place.tree->files()[entry.file]; }
  std::string PathOf(const Entry& entry) const { return place.tree->Shown(FileOf(entry).path); }
};

void CountSkipped(const std::string& path, SkippedFiles& skipped) {
  const std::string ending = absl::AsciiStrToLower(fs::path(path).extension().string());
  ++skipped[ending.empty() ? "without an ending" : ending];
}

// Returns "14 files of other formats skipped: 9 .heic, 5 .txt", or "" if no file was skipped.
std::string SkippedText(const SkippedFiles& skipped) {
  int64_t files = 0;
  std::vector<std::pair<int64_t, std::string>> kinds;
  for (const auto& [ending, count] : skipped) {
    files += count;
    kinds.emplace_back(-count, ending);
  }
  if (files == 0) return "";
  // The most frequent ending first.
  std::sort(kinds.begin(), kinds.end());
  std::vector<std::string> parts;
  int64_t others = files;
  for (const auto& [negative, ending] : kinds) {
    if (parts.size() == kNamedEndings) break;
    parts.push_back(absl::StrCat(-negative, " ", ending));
    others += negative;
  }
  if (others > 0) parts.push_back(absl::StrCat(others, " others"));
  return absl::StrCat(files, files == 1 ? " file" : " files",
                      " of other formats skipped: ", absl::StrJoin(parts, ", "));
}

// Returns the names of a place's subfolders, in order. INVALID_ARGUMENT if there are none.
absl::StatusOr<std::vector<std::string>> Subfolders(const Place& place) {
  std::vector<std::string> names;
  for (const std::string& folder : place.tree->folders()) {
    absl::string_view name = folder;
    if (absl::ConsumePrefix(&name, place.prefix) && !absl::StrContains(name, '/')) names.emplace_back(name);
  }
  if (names.empty()) {
    const std::vector<PictureTree::File>& files = place.tree->files();
    const bool has_shards = std::any_of(files.begin(), files.end(), [](const PictureTree::File& file) {
      return IsShardName(file.path) || absl::EndsWithIgnoreCase(file.path, ".cls");
    });
    return absl::InvalidArgumentError(absl::StrCat(
        place.Shown(), " has no subfolders; it must have one for each class, with the class's images",
        has_shards ? "; if it has shards of pictures, give webdataset in place of image_folder" : ""));
  }
  return names;
}

// Calls `use` with each file in a folder, at any depth. `prefix` is the folder's path with a slash at the
// end, or
// "". `name` is the file's path relative to the folder.
void ForEachFile(const PictureTree& tree, const std::string& prefix,
                 absl::FunctionRef<void(size_t file, absl::string_view name)> use) {
  const std::vector<PictureTree::File>& files = tree.files();
  const auto begin = std::lower_bound(
      files.begin(), files.end(), prefix,
      [](const PictureTree::File& file, const std::string& path) { return file.path < path; });
  for (auto file = begin; file != files.end(); ++file) {
    absl::string_view name = file->path;
    if (!absl::ConsumePrefix(&name, prefix)) return;
    use(file - files.begin(), name);
  }
}

// Returns whether a folder holds only folders with files. The outer folder of an archive does if the archive
// was unpacked into a folder of its own name.
bool HoldsFoldersAlone(const PictureTree& tree, const std::string& prefix) {
  bool files = false, folders = false;
  ForEachFile(tree, prefix, [&](size_t /*file*/, absl::string_view name) {
    (absl::StrContains(name, '/') ? folders : files) = true;
  });
  return folders && !files;
}

// Returns whether a name means a part of a data set. If all subfolders have such names, they are no classes.
bool IsPart(const std::string& name) { return PartOf(name) != DataPart::kNone; }

// Checks that the subfolders may be classes.
absl::Status CheckClasses(const Place& place, const std::vector<std::string>& names) {
  if (names.size() < 2 || !std::all_of(names.begin(), names.end(), IsPart)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(place.Shown(), " has the subfolders ", ListNames(names),
                                                 ", which are parts of a data set and no classes; give one "
                                                 "of them as image_folder.train, and another one as "
                                                 "image_folder.validation"));
}

// Returns the likely mistake if all images have the same class.
std::string OneClassMend(const Place& place, const std::string& name) {
  if (HoldsFoldersAlone(*place.tree, absl::StrCat(place.prefix, name, "/"))) {
    const std::string inner = absl::StrCat(place.Shown(), "/", name);
    return absl::StrCat(inner,
                        " holds folders and no image, as an archive's folder in another one does: give ",
                        "image_folder.train: ", inner);
  }
  return absl::StrCat("add a subfolder to ", place.Shown(), " for each other class");
}

// Adds the images of a class, in the order of their paths.
absl::Status AddClass(const std::string& name, int32_t label, FolderSplit& split) {
  const PictureTree& tree = *split.place.tree;
  const std::string prefix = absl::StrCat(split.place.prefix, name, "/");
  SkippedFiles skipped;
  const size_t before = split.entries.size();
  ForEachFile(tree, prefix, [&](size_t file, absl::string_view inner) {
    if (IsPictureName(inner)) {
      split.entries.push_back({.file = file, .label = label, .header = {}});
    } else {
      CountSkipped(std::string(inner), skipped);
    }
  });
  if (split.entries.size() == before) {
    const std::string text = SkippedText(skipped);
    return absl::InvalidArgumentError(
        absl::StrCat(split.place.Shown(), "/", name,
                     " has no image: no file ending in .jpg, .png, .webp, .bmp, .tiff or .gif",
                     text.empty() ? "" : "; ", text));
  }
  for (const auto& [ending, count] : skipped) split.skipped[ending] += count;
  if (static_cast<int64_t>(split.entries.size()) > kMaxSamples) {
    return absl::InvalidArgumentError(
        absl::StrCat("has more than the ", kMaxSamples, " images that can be read"));
  }
  return absl::OkStatus();
}

// Returns the classes of the training images: the model's if they include all subfolders, else the
// subfolders. `labels` receives DatasetInfo::class_labels.
absl::StatusOr<std::vector<std::string>> ClassesOf(const Place& place, const DataNames& model,
                                                   std::vector<int32_t>* labels) {
  TANDEM_ASSIGN_OR_RETURN(std::vector<std::string> names, Subfolders(place));
  TANDEM_RETURN_IF_ERROR(CheckClasses(place, names));
  if (model.classes.empty()) return names;
  const absl::flat_hash_set<absl::string_view> known(model.classes.begin(), model.classes.end());
  for (const std::string& name : names) {
    if (known.contains(name)) continue;
    if (model.takes_other_outputs) return names;
    return absl::InvalidArgumentError(absl::StrCat(
        place.Shown(), " has a class ", ListNames({name}), ", which the model does not know; it knows ",
        ListNames(model.classes), "; remove the folder, or rename it if it is misspelt"));
  }
  *labels = ClassLabels(names, model.classes);
  return model.classes;
}

// Lists the images of a split. Its subfolders must be among `classes`, whose order gives the labels.
absl::Status ListSplit(const std::vector<std::string>& classes, FolderSplit& split) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> names, Subfolders(split.place));
  absl::flat_hash_map<absl::string_view, int32_t> labels;
  for (size_t i = 0; i < classes.size(); ++i) labels.emplace(classes[i], static_cast<int32_t>(i));
  for (const std::string& name : names) {
    const auto found = labels.find(name);
    if (found == labels.end()) {
      return absl::InvalidArgumentError(absl::StrCat(split.place.Shown(), " has a class \"", name,
                                                     "\", which the training images do not have; they have ",
                                                     classes.size(), " classes: ", ListNames(classes)));
    }
    TANDEM_RETURN_IF_ERROR(AddClass(name, found->second, split));
  }
  ForEachFile(*split.place.tree, split.place.prefix, [&](size_t /*file*/, absl::string_view name) {
    if (absl::StrContains(name, '/')) return;
    if (IsPictureName(name)) {
      ++split.outside_classes;
    } else {
      CountSkipped(std::string(name), split.skipped);
    }
  });
  return absl::OkStatus();
}

// Reads the first `most` bytes of an image's file.
absl::StatusOr<std::string> ReadFile(const FolderSplit& split, const Entry& entry, int64_t most) {
  const PictureTree::File& file = split.FileOf(entry);
  if (file.bytes > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(split.PathOf(entry), " has ", file.bytes, " bytes, more than an image file may have"));
  }
  return split.place.tree->Read(file, most);
}

absl::Status WithPath(const FolderSplit& split, const Entry& entry, const absl::Status& status) {
  if (status.ok() || !absl::IsInvalidArgument(status)) return status;
  return absl::InvalidArgumentError(absl::StrCat(split.PathOf(entry), " ", status.message()));
}

// Sets the entry's header. `needs_size`: the header's height and width are needed.
absl::Status ReadHeader(const FolderSplit& split, bool needs_size, Entry& entry) {
  TANDEM_ASSIGN_OR_RETURN(std::string begin, ReadFile(split, entry, kHeaderBytes));
  absl::StatusOr<Image> header = ReadImageHeader(begin);
  const bool is_enough = header.ok() && !(needs_size && header->may_turn);
  if (!is_enough && split.FileOf(entry).bytes > kHeaderBytes) {
    TANDEM_ASSIGN_OR_RETURN(begin, ReadFile(split, entry, kMaxFileBytes));
    header = ReadImageHeader(begin);
  }
  if (header.ok()) entry.header = *std::move(header);
  return WithPath(split, entry, header.status());
}

// Decodes an image whole. Sets the entry's header.
absl::Status CheckEntry(const FolderSplit& split, Entry& entry) {
  TANDEM_ASSIGN_OR_RETURN(const std::string content, ReadFile(split, entry, kMaxFileBytes));
  const absl::StatusOr<Image> image = DecodeImage(content);
  if (image.ok()) {
    entry.header = {
        .channels = image->channels, .height = image->height, .width = image->width, .pixels = {}};
  }
  return WithPath(split, entry, image.status());
}

// Returns the bad images among the split's images from number `first` on, by their statuses. Other errors
// than INVALID_ARGUMENT are no fault of an image: returns the first such error.
absl::StatusOr<BadImages> FindBadImages(const FolderSplit& split, const std::vector<absl::Status>& statuses,
                                        size_t first = 0) {
  BadImages bad;
  bad.field = split.field;
  bad.images = statuses.size();
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (statuses[i].ok()) continue;
    if (!absl::IsInvalidArgument(statuses[i])) return statuses[i];
    ++bad.bad;
    if (bad.first.size() == kNamedImages) continue;
    absl::string_view fault = statuses[i].message();
    const std::string path = split.PathOf(split.entries[first + i]);
    const bool has_path = absl::ConsumePrefix(&fault, path);
    bad.first.push_back({has_path ? path : "", std::string(fault)});
  }
  if (bad.bad > 0) bad.folder = absl::StrCat(split.place.Shown(), "/");
  return bad;
}

struct Folders {
  DatasetInfo info;
  FolderSplit train{.field = "image_folder.train", .place = {}, .entries = {}, .skipped = {}};
  FolderSplit validation{.field = "image_folder.validation", .place = {}, .entries = {}, .skipped = {}};
};

absl::Status CheckSource(const v1::ImageFolderSource& source) {
  FieldViolations violations;
  if (source.train().empty())
    violations.Add("image_folder.train", "is required: a folder with a subfolder a class");
  for (const auto& [field, side] :
       {std::pair("image_folder.height", source.height()), std::pair("image_folder.width", source.width())}) {
    if (side < 0 || side > kMaxSide) {
      violations.Add(field, absl::StrCat("is ", side, "; it must be from 1 to ", kMaxSide, ", or left out"));
    }
  }
  if ((source.height() == 0) != (source.width() == 0)) {
    violations.Add(source.height() == 0 ? "image_folder.height" : "image_folder.width",
                   "is missing; give both height and width, or neither");
  }
  if (source.channels() != 0 && source.channels() != 1 && source.channels() != 3) {
    violations.Add("image_folder.channels", absl::StrCat("is ", source.channels(), "; it must be 1 or 3"));
  }
  return violations.ToStatus();
}

// Checks that all images have the same size as the first training image, if no size is requested.
absl::Status CheckSizes(const FolderSplit& split, const FolderSplit& train) {
  const Image& first = train.entries[0].header;
  for (const Entry& entry : split.entries) {
    if (entry.header.height == first.height && entry.header.width == first.width) continue;
    return FieldError(split.field,
                      absl::StrCat(split.PathOf(entry), " has ", entry.header.height, " x ",
                                   entry.header.width, " pixels (height x width), but ",
                                   train.PathOf(train.entries[0]), " has ", first.height, " x ", first.width,
                                   "; give image_folder.height and width to bring all images to one size"));
  }
  return absl::OkStatus();
}

// Tells people about files that are not read.
void AddNotices(const FolderSplit& split, std::vector<std::string>& notices) {
  const std::string text = SkippedText(split.skipped);
  if (!text.empty()) notices.push_back(absl::StrCat(split.field, ": ", text));
  if (split.outside_classes > 0) {
    notices.push_back(absl::StrCat(split.field, ": ", split.outside_classes,
                                   split.outside_classes == 1 ? " image" : " images",
                                   " beside the folders of classes skipped"));
  }
}

// Decodes the images of splits with few bytes. Other images have their headers read, see ReadHeader. Reports
// all bad images.
absl::Status CheckImages(Folders& folders, bool decode, bool needs_size) {
  std::vector<BadImages> bad;
  for (FolderSplit* split : {&folders.train, &folders.validation}) {
    std::vector<Entry>& entries = split->entries;
    int64_t bytes = 0;
    for (const Entry& entry : entries) bytes += split->FileOf(entry).bytes;
    const bool whole = decode && bytes <= kCheckedBytes;
    const std::vector<absl::Status> statuses = ReadAll(entries.size(), [&](size_t i) -> absl::Status {
      return whole ? CheckEntry(*split, entries[i]) : ReadHeader(*split, needs_size, entries[i]);
    });
    TANDEM_ASSIGN_OR_RETURN(BadImages found, FindBadImages(*split, statuses));
    bad.push_back(std::move(found));
  }
  return BadImagesStatus(bad);
}

// Opens the folders or archives of the source. Takes the parts of a data set, see ImageFolderSource.train.
// Returns the name of a test part that no field names, or "".
absl::StatusOr<std::string> OpenPlaces(const v1::ImageFolderSource& source, Folders& folders) {
  FieldViolations violations;
  const auto open = [&](const std::string& path, FolderSplit& split) {
    absl::StatusOr<std::shared_ptr<const PictureTree>> tree = PictureTree::Open(path);
    violations.AddAll(split.field, tree.status());
    if (tree.ok()) split.place.tree = *std::move(tree);
  };
  open(source.train(), folders.train);
  if (!source.validation().empty()) open(source.validation(), folders.validation);
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  Place& train = folders.train.place;
  const absl::StatusOr<std::vector<std::string>> names = Subfolders(train);
  // The missing subfolders are reported as missing classes.
  if (!names.ok()) return "";
  const absl::StatusOr<DataParts> parts = FindDataParts(train.Shown(), *names);
  violations.AddAll(folders.train.field, parts.status());
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  if (parts->train.empty()) return "";
  const std::string test = parts->test.empty() ? "" : train.tree->Shown(parts->test);
  if (folders.validation.place.tree == nullptr && !parts->validation.empty()) {
    folders.validation.place = {.tree = train.tree, .prefix = absl::StrCat(parts->validation, "/")};
  }
  train.prefix = absl::StrCat(parts->train, "/");
  return source.validation() == test ? "" : test;
}

// `decode`: see CheckImages.
absl::StatusOr<Folders> LookIntoFolders(const v1::ImageFolderSource& source, const DataNames& model,
                                        bool decode) {
  TANDEM_RETURN_IF_ERROR(CheckSource(source));
  Folders folders;
  FieldViolations violations;
  TANDEM_ASSIGN_OR_RETURN(const std::string test, OpenPlaces(source, folders));
  absl::StatusOr<std::vector<std::string>> found =
      ClassesOf(folders.train.place, model, &folders.info.class_labels);
  violations.AddAll(folders.train.field, found.status());
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  std::vector<std::string> classes = *std::move(found);
  violations.AddAll(folders.train.field, ListSplit(classes, folders.train));
  if (violations.empty() && folders.validation.place.tree != nullptr) {
    violations.AddAll(folders.validation.field, ListSplit(classes, folders.validation));
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  bool grey = true;
  TANDEM_RETURN_IF_ERROR(CheckImages(folders, decode, /*needs_size=*/source.height() == 0));
  for (const FolderSplit* split : {&folders.train, &folders.validation}) {
    if (source.height() == 0) TANDEM_RETURN_IF_ERROR(CheckSizes(*split, folders.train));
    AddNotices(*split, folders.info.notices);
  }
  if (!test.empty()) {
    folders.info.notices.push_back(absl::StrCat(
        "The test part ", test, " is not read; give it as image_folder.validation to validate with it"));
  }
  for (const Entry& entry : folders.train.entries) grey = grey && entry.header.channels == 1;
  const Image& first = folders.train.entries[0].header;
  DatasetInfo& info = folders.info;
  info.shape = Shape({source.channels() != 0 ? source.channels()
                      : grey                 ? 1
                                             : 3,
                      source.height() != 0 ? source.height() : first.height,
                      source.width() != 0 ? source.width() : first.width});
  info.classes = static_cast<int64_t>(classes.size());
  const std::vector<Entry>& training = folders.train.entries;
  info.one_label = std::all_of(training.begin(), training.end(),
                               [&](const Entry& entry) { return entry.label == training[0].label; });
  if (info.one_label) info.one_class_mend = OneClassMend(folders.train.place, classes[training[0].label]);
  info.class_names = std::move(classes);
  info.labels_follow_names = true;
  info.train_samples = static_cast<int64_t>(folders.train.entries.size());
  info.validation_samples = static_cast<int64_t>(folders.validation.entries.size());
  info.memory_bytes = (info.train_samples + info.validation_samples) *
                      (info.shape.elements() + static_cast<int64_t>(sizeof(int32_t)));
  if (info.memory_bytes > kMaxDatasetBytes) {
    return FieldError(
        folders.train.field,
        absl::StrCat("and validation hold ", info.train_samples + info.validation_samples, " images of ",
                     info.shape.ToString(), ", together more than the ", kMaxDatasetBytes,
                     " bytes that can be held; give a smaller image_folder.height and width"));
  }
  return folders;
}

// Decodes `count` images from number `first` on into `pixels`, on several threads.
absl::Status DecodeSome(const FolderSplit& split, size_t first, size_t count, const Shape& shape,
                        v1::ImageResize resize, uint8_t* pixels, int32_t* labels) {
  const int64_t bytes = shape.elements();
  const PictureForm form = {.channels = shape[0], .height = shape[1], .width = shape[2], .resize = resize};
  const auto decode = [&](size_t i) -> absl::Status {
    const Entry& entry = split.entries[first + i];
    TANDEM_ASSIGN_OR_RETURN(const std::string content, ReadFile(split, entry, kMaxFileBytes));
    // The file may have been replaced since its size was read: an image of another size is resized.
    TANDEM_RETURN_IF_ERROR(
        WithPath(split, entry, DecodeSample(content, form, pixels + static_cast<int64_t>(i) * bytes)));
    labels[i] = entry.label;
    return absl::OkStatus();
  };
  TANDEM_ASSIGN_OR_RETURN(const BadImages bad, FindBadImages(split, ReadAll(count, decode), first));
  return BadImagesStatus({bad});
}

absl::StatusOr<std::unique_ptr<const Dataset>> ReadSplit(const FolderSplit& split, const Shape& shape,
                                                         v1::ImageResize resize) {
  const int64_t bytes = shape.elements();
  const size_t count = split.entries.size();
  std::vector<uint8_t> pixels(static_cast<int64_t>(count) * bytes);
  std::vector<int32_t> labels(count);
  TANDEM_RETURN_IF_ERROR(DecodeSome(split, 0, count, shape, resize, pixels.data(), labels.data()));
  return std::make_unique<MemoryDataset>(bytes, std::move(pixels), sizeof(int32_t), BytesOf(labels));
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> ImageFolderLabels(const v1::ImageFolderSource& source) {
  const DataNames none = {.matches_inputs = false, .matches_outputs = false};
  TANDEM_ASSIGN_OR_RETURN(const Folders folders, LookIntoFolders(source, none, /*decode=*/false));
  std::vector<int32_t> labels;
  for (const Entry& entry : folders.train.entries) labels.push_back(entry.label);
  return labels;
}

absl::Status StreamImageFolder(const v1::ImageFolderSource& source, UseSamples use) {
  const DataNames none = {.matches_inputs = false, .matches_outputs = false};
  TANDEM_ASSIGN_OR_RETURN(const Folders folders, LookIntoFolders(source, none, /*decode=*/false));
  const Shape& shape = folders.info.shape;
  const size_t all = folders.train.entries.size();
  const size_t at_once =
      std::max<size_t>(1, kStreamedImageBytes / static_cast<size_t>(std::max<int64_t>(1, shape.elements())));
  std::vector<uint8_t> pixels(at_once * shape.elements());
  std::vector<int32_t> labels(at_once);
  for (size_t first = 0; first < all; first += at_once) {
    const size_t count = std::min(at_once, all - first);
    TANDEM_RETURN_IF_ERROR(
        DecodeSome(folders.train, first, count, shape, source.resize(), pixels.data(), labels.data()));
    use(static_cast<int64_t>(first), static_cast<int64_t>(count), pixels.data(), labels.data());
  }
  return absl::OkStatus();
}

absl::StatusOr<DatasetInfo> DescribeImageFolder(const v1::ImageFolderSource& source, const DataNames& model) {
  TANDEM_ASSIGN_OR_RETURN(Folders folders, LookIntoFolders(source, model, /*decode=*/true));
  return std::move(folders.info);
}

absl::StatusOr<OpenedDataset> OpenImageFolder(const v1::ImageFolderSource& source, const DataNames& model) {
  TANDEM_ASSIGN_OR_RETURN(Folders folders, LookIntoFolders(source, model, /*decode=*/false));
  OpenedDataset opened;
  opened.info = std::move(folders.info);
  TANDEM_ASSIGN_OR_RETURN(opened.train, ReadSplit(folders.train, opened.info.shape, source.resize()));
  if (!folders.validation.entries.empty()) {
    TANDEM_ASSIGN_OR_RETURN(opened.validation,
                            ReadSplit(folders.validation, opened.info.shape, source.resize()));
  }
  return opened;
}

absl::StatusOr<std::vector<std::string>> ImagesIn(const std::string& folder) {
  FolderSplit split;
  TANDEM_ASSIGN_OR_RETURN(split.place.tree, PictureTree::Open(folder));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> names, Subfolders(split.place));
  for (const std::string& name : names) TANDEM_RETURN_IF_ERROR(AddClass(name, /*label=*/0, split));
  std::vector<std::string> paths;
  for (const Entry& entry : split.entries) paths.push_back(split.PathOf(entry));
  return paths;
}

}  // namespace tandem
