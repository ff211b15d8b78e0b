#include "engine/data/data_digest.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "engine/data/formats/image_folder_dataset.h"
#include "engine/data/parallel.h"
#include "engine/data/source_paths.h"
#include "proto/data_folder/data_folder.h"
#include "proto/data_folder/shards.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Returns the files of a folder, in order.
absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  TANDEM_RETURN_IF_ERROR(WalkDataFolder(folder, [&](const fs::path& path, bool is_folder) {
    if (!is_folder) files.push_back(path.string());
  }));
  std::sort(files.begin(), files.end());
  return files;
}

// Returns the digest of the paths, without their first `cut` bytes, and the contents of files.
absl::StatusOr<std::string> DigestFiles(const std::vector<std::string>& files, size_t cut) {
  std::vector<std::string> digests(files.size());
  const std::vector<absl::Status> statuses = RunInParallel(files.size(), [&](size_t i) -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(digests[i], Sha256OfFile(files[i]));
    return absl::OkStatus();
  });
  for (const absl::Status& status : statuses) TANDEM_RETURN_IF_ERROR(status);
  Sha256 all;
  for (size_t i = 0; i < files.size(); ++i) {
    all.Add(absl::StrCat(files[i].substr(cut), absl::string_view("\0", 1), digests[i], "\n"));
  }
  return all.Finish();
}

// As DigestFiles, with the sizes of files in place of their contents.
absl::StatusOr<std::string> DigestSizes(const std::vector<std::string>& files, size_t cut) {
  Sha256 all;
  for (const std::string& file : files) {
    std::error_code error;
    const uintmax_t bytes = fs::file_size(file, error);
    if (error) {
      return absl::InvalidArgumentError(absl::StrCat(file, " cannot be read: ", error.message()));
    }
    all.Add(absl::StrCat(file.substr(cut), absl::string_view("\0", 1), bytes, "\n"));
  }
  return all.Finish();
}

absl::StatusOr<std::string> DigestPath(const SourcePath& source, bool images) {
  const std::string& path = *source.path;
  std::error_code ignored;
  if (source.kind == PathKind::kShards) {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> shards, ListShards(path));
    return DigestSizes(shards, fs::is_directory(path, ignored) ? path.size() : FolderOfPattern(path).size());
  }
  if (!fs::is_directory(path, ignored)) return Sha256OfFile(path);
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> files, images ? ImagesIn(path) : FilesIn(path));
  return DigestFiles(files, path.size());
}

}  // namespace

absl::StatusOr<DataDigest> DigestData(const v1::DatasetSpec& spec) {
  v1::DatasetSpec copy = spec;
  // These fields name and change samples, but do not select them.
  copy.clear_name();
  copy.clear_class_names();
  copy.clear_normalization();
  copy.clear_augmentation();
  DataDigest digest;
  if (copy.has_image_folder()) {
    v1::ImageFolderSource& source = *copy.mutable_image_folder();
    TANDEM_ASSIGN_OR_RETURN(const DataParts parts, FindDataParts(source.train()));
    if (!parts.train.empty()) {
      source.set_train(parts.train);
      if (source.validation().empty()) source.set_validation(parts.validation);
    }
  }
  for (const SourcePath& path : PathsOf(&copy)) {
    if (path.path->empty()) continue;
    TANDEM_ASSIGN_OR_RETURN(digest[path.field], DigestPath(path, spec.has_image_folder()));
    path.path->clear();
  }
  TANDEM_ASSIGN_OR_RETURN(digest[kDataSettings], Sha256Of(copy.SerializeAsString()));
  return digest;
}

std::vector<std::string> ChangedFields(const DataDigest& before, const DataDigest& now) {
  std::vector<std::string> changed;
  for (const auto& [field, digest] : before) {
    const auto found = now.find(field);
    if (found != now.end() && found->second != digest) changed.push_back(field);
  }
  return changed;
}

}  // namespace tandem
