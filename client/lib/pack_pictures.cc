#include "client/lib/pack_pictures.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/lib/shard_writer.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "proto/data_folder/data_folder.h"

namespace tandem::client {
namespace {

namespace fs = std::filesystem;

// The longest picture that can be read from a shard.
constexpr uintmax_t kMaxPictureBytes = uintmax_t{1} << 28;

struct Picture {
  std::string path;
  int label = 0;
};

absl::Status Refuse(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot pack ", path, ": ", why));
}

// Returns the pictures of each class of a folder, by the class's name, in the order of their paths. Counts
// the other files.
absl::StatusOr<std::map<std::string, std::vector<std::string>>> PicturesIn(const std::string& folder,
                                                                           int64_t* others) {
  std::map<std::string, std::vector<std::string>> classes;
  TANDEM_RETURN_IF_ERROR(WalkDataFolder(folder, [&](const fs::path& path, bool is_folder) {
    const fs::path relative = path.lexically_relative(folder);
    const std::string name = relative.begin()->string();
    const bool is_inside = std::next(relative.begin()) != relative.end();
    if (is_folder || is_inside) classes[name];
    if (is_folder) return;
    if (is_inside && IsPictureName(path.string())) {
      classes[name].push_back(path.string());
    } else {
      ++*others;
    }
  }));
  if (classes.empty()) {
    return Refuse(folder, "it has no subfolders; it must have one for each class, with the class's pictures");
  }
  for (auto& [name, pictures] : classes) {
    if (pictures.empty())
      return Refuse(absl::StrCat(folder, "/", name), "it has no picture; add one, or remove it");
    std::sort(pictures.begin(), pictures.end());
  }
  return classes;
}

// Returns the pictures of a part in the order of its shards. Fills `names` if it is empty, for the training
// part. Adds the number of other files to `others`.
absl::StatusOr<std::vector<Picture>> ListPart(const std::string& folder, std::vector<std::string>* names,
                                              int64_t* others) {
  TANDEM_ASSIGN_OR_RETURN(const auto classes, PicturesIn(folder, others));
  const bool is_training = names->empty();
  std::vector<Picture> pictures;
  for (const auto& [name, paths] : classes) {
    if (is_training) names->push_back(name);
    const auto found = std::find(names->begin(), names->end(), name);
    if (found == names->end()) {
      return Refuse(absl::StrCat(folder, "/", name),
                    "the training part has no class of this name; rename it");
    }
    for (const std::string& path : paths) {
      pictures.push_back({path, static_cast<int>(found - names->begin())});
    }
  }
  // The standard defines the numbers of this generator, so that the order is the same everywhere.
  std::mt19937_64 random(0);
  for (size_t i = pictures.size(); i > 1; --i) std::swap(pictures[i - 1], pictures[random() % i]);
  return pictures;
}

absl::Status AddPicture(const Picture& picture, size_t number, ShardWriter* writer) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(picture.path, error);
  if (error) return Refuse(picture.path, error.message());
  if (bytes > kMaxPictureBytes) {
    return Refuse(picture.path,
                  absl::StrCat("it has ", bytes, " bytes; at most ", kMaxPictureBytes, " are allowed"));
  }
  TANDEM_ASSIGN_OR_RETURN(const std::string content, Env::Real()->ReadFile(picture.path));
  if (!IsPictureContent(content)) {
    return Refuse(picture.path, "its content is no picture that can be read; convert or remove it");
  }
  const std::string ending = absl::AsciiStrToLower(fs::path(picture.path).extension().string()).substr(1);
  return writer->Add(absl::StrFormat("%09d", number), ending, content, picture.label);
}

// Returns the pattern of the shards, or the only shard.
std::string PatternOf(const std::string& name, int64_t shards) {
  return shards == 1 ? absl::StrCat(name, "-000000.tar")
                     : absl::StrFormat("%s-{000000..%06d}.tar", name, shards - 1);
}

absl::Status MakeEmptyFolder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error && !fs::is_empty(folder, error) && !error) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot pack into ", folder, ": it is not empty; give a new folder"));
  }
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("cannot pack into ", folder, ": ", error.message()));
}

}  // namespace

absl::StatusOr<PackedPictures> PackPictures(const PackRequest& request) {
  std::error_code error;
  if (!fs::is_directory(request.folder, error))
    return Refuse(request.folder, "it is no folder; give a folder with pictures");
  const std::string root = fs::path(request.folder).lexically_normal().string();
  TANDEM_ASSIGN_OR_RETURN(DataParts parts, FindDataParts(root));
  if (parts.train.empty()) parts = {.train = root, .validation = "", .test = ""};
  PackedPictures packed;
  packed.left_out = parts.test;
  std::vector<std::string> names;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Picture> train,
                          ListPart(parts.train, &names, &packed.skipped_files));
  std::vector<Picture> validation;
  if (!parts.validation.empty()) {
    TANDEM_ASSIGN_OR_RETURN(validation, ListPart(parts.validation, &names, &packed.skipped_files));
  }
  TANDEM_RETURN_IF_ERROR(MakeEmptyFolder(request.shards));
  const auto write = [&](const std::vector<Picture>& pictures, const std::string& name,
                         std::string* pattern) -> absl::Status {
    if (pictures.empty()) return absl::OkStatus();
    ShardWriter writer(Env::Real(), absl::StrCat(request.shards, "/", name), request.shard_bytes);
    for (size_t i = 0; i < pictures.size(); ++i) {
      TANDEM_RETURN_IF_ERROR(AddPicture(pictures[i], i, &writer));
    }
    TANDEM_RETURN_IF_ERROR(writer.Finish());
    *pattern = PatternOf(name, writer.shards());
    packed.shards += writer.shards();
    packed.bytes += writer.bytes();
    return absl::OkStatus();
  };
  v1::WebDatasetSource& source = *packed.spec.mutable_webdataset();
  TANDEM_RETURN_IF_ERROR(write(train, "train", source.mutable_train()));
  TANDEM_RETURN_IF_ERROR(write(validation, "validation", source.mutable_validation()));
  source.set_classes(static_cast<int64_t>(names.size()));
  for (std::string& name : names) packed.spec.add_class_names(std::move(name));
  packed.train = static_cast<int64_t>(train.size());
  packed.validation = static_cast<int64_t>(validation.size());
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.add_whitespace = true;
  std::string json;
  const auto printed = google::protobuf::util::MessageToJsonString(packed.spec, &json, options);
  if (!printed.ok()) {
    return Refuse(request.folder, "a class's name is not UTF-8; rename its folder");
  }
  TANDEM_RETURN_IF_ERROR(WriteFileAtomically(Env::Real(), absl::StrCat(request.shards, "/", kPackedSpec),
                                             [&](WritableFile& file) { return file.Append(json); }));
  return packed;
}

}  // namespace tandem::client
