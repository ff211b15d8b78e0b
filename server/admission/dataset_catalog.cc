#include "server/admission/dataset_catalog.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "server/admission/closest_name.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr char kFashionMnist[] = "fashion-mnist";
// Xiao, Rasul and Vollgraf 2017, in the order of the labels.
constexpr const char* kFashionMnistClasses[] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

std::string FashionMnistMissing(const std::vector<std::string>& data_folders) {
  return absl::StrCat(
      "not in the daemon's data folders (",
      data_folders.empty() ? "there are none" : absl::StrJoin(data_folders, ", "),
      "); install Debian's package dataset-fashion-mnist, which goes to /usr/share/datasets, or put its four "
      "IDX files into a subfolder 'fashion-mnist' of one of them (--data-folder)");
}

constexpr const char* kTrainImages = "train-images-idx3-ubyte";
constexpr const char* kTrainLabels = "train-labels-idx1-ubyte";
constexpr const char* kTestImages = "t10k-images-idx3-ubyte";
constexpr const char* kTestLabels = "t10k-labels-idx1-ubyte";

// More would be somebody's mistake or malice; a description is a few numbers.
constexpr size_t kMaxDescribed = 256;

std::string Quote(absl::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, 200)), text.size() > 200 ? "..." : "", "'");
}

// The file itself or compressed; empty where there is neither.
std::string FindFile(const std::string& folder, const char* file) {
  std::error_code ignored;
  for (const char* ending : {"", ".gz"}) {
    std::string path = absl::StrCat(folder, "/", file, ending);
    if (fs::is_regular_file(path, ignored)) return path;
  }
  return "";
}

bool IsDatasetFolder(const std::string& folder) {
  for (const char* file : {kTrainImages, kTrainLabels, kTestImages, kTestLabels}) {
    if (FindFile(folder, file).empty()) return false;
  }
  return true;
}

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= 100 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

v1::IdxSource FilesOf(const std::string& folder) {
  v1::IdxSource source;
  source.set_train_images(FindFile(folder, kTrainImages));
  source.set_train_labels(FindFile(folder, kTrainLabels));
  source.set_validation_images(FindFile(folder, kTestImages));
  source.set_validation_labels(FindFile(folder, kTestLabels));
  return source;
}

// Whether `path`, normal and absolute, is `folder` or below it.
bool IsBelow(const fs::path& path, const fs::path& folder) {
  const auto [in_folder, in_path] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  // A folder written with a slash at its end has an empty last part.
  return in_folder == folder.end() || (in_folder->empty() && std::next(in_folder) == folder.end());
}

// Changes whenever one of the files does.
std::string Fingerprint(const v1::DatasetSpec& spec) {
  if (!spec.has_idx()) return "";
  std::string fingerprint;
  for (const std::string& path : {spec.idx().train_images(), spec.idx().train_labels(),
                                  spec.idx().validation_images(), spec.idx().validation_labels()}) {
    struct stat info = {};
    if (!path.empty()) stat(path.c_str(), &info);
    absl::StrAppend(&fingerprint, info.st_dev, ":", info.st_ino, ":", info.st_size, ":", info.st_mtim.tv_sec,
                    ".", info.st_mtim.tv_nsec, ":", info.st_ctim.tv_sec, ".", info.st_ctim.tv_nsec, ";");
  }
  return fingerprint;
}

}  // namespace

DatasetCatalog::DatasetCatalog(std::vector<std::string> data_folders)
    : data_folders_(std::move(data_folders)) {}

std::map<std::string, std::string> DatasetCatalog::Find() const {
  std::map<std::string, std::string> found;
  for (const std::string& data_folder : data_folders_) {
    std::error_code error;
    for (fs::directory_iterator entry(data_folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (IsName(name) && !found.contains(name) && IsDatasetFolder(entry->path().string())) {
        found[name] = entry->path().string();
      }
    }
  }
  return found;
}

absl::StatusOr<std::string> DatasetCatalog::ResolvePath(const std::string& text) const {
  const auto outside = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "is ", Quote(text), ", which is not inside a data folder of the daemon (",
        data_folders_.empty() ? "it has none" : absl::StrJoin(data_folders_, ", "),
        "); put the files there, or start the daemon with their folder as another --data-folder"));
  };
  if (text.find('\0') != std::string::npos || text.size() > 4096) {
    return absl::InvalidArgumentError("is not a path");
  }
  const fs::path path(text);
  bool lexically_inside = false;
  for (const std::string& data_folder : data_folders_) {
    std::error_code error;
    const fs::path folder = fs::canonical(data_folder, error);
    if (error) continue;
    const fs::path candidate = (path.is_absolute() ? path : folder / path).lexically_normal();
    // Only of what is inside do we say whether it is there.
    if (!IsBelow(candidate, folder) && !IsBelow(candidate, fs::path(data_folder).lexically_normal()))
      continue;
    lexically_inside = true;
    const fs::path resolved = fs::canonical(candidate, error);
    if (error) continue;
    // A symbolic link may lead into another data folder.
    for (const std::string& allowed : data_folders_) {
      const fs::path allowed_folder = fs::canonical(allowed, error);
      if (!error && IsBelow(resolved, allowed_folder)) {
        if (!fs::is_regular_file(resolved, error)) {
          return absl::InvalidArgumentError(absl::StrCat("is ", Quote(text), ", which is not a plain file"));
        }
        return resolved.string();
      }
    }
    return outside();
  }
  if (!lexically_inside) return outside();
  return absl::InvalidArgumentError(
      absl::StrCat("is ", Quote(text), ", and there is no such file that the daemon can read",
                   path.is_absolute() ? "" : absl::StrCat(" in ", absl::StrJoin(data_folders_, " or "))));
}

absl::StatusOr<v1::DatasetSpec> DatasetCatalog::Resolve(const v1::DatasetSpec& spec) const {
  v1::DatasetSpec resolved = spec;
  const bool has_source = spec.source_case() != v1::DatasetSpec::SOURCE_NOT_SET;
  if (spec.name().empty() && !has_source) {
    return FieldError("", "needs a name, such as \"fashion-mnist\", or a source: idx or synthetic");
  }
  if (!spec.name().empty()) {
    if (has_source) {
      return FieldError("name", absl::StrCat("is ", Quote(spec.name()),
                                             ", but there is a source too; give only one of them"));
    }
    // ListDatasets gives the full name.
    const std::string name(absl::StripPrefix(spec.name(), "datasets/"));
    const std::map<std::string, std::string> known = Find();
    const auto found = known.find(name);
    if (found == known.end()) {
      if (name == kFashionMnist)
        return FieldError("name",
                          absl::StrCat("is 'fashion-mnist', which is ", FashionMnistMissing(data_folders_)));
      std::vector<std::string> names = {kFashionMnist};
      for (const auto& [other, folder] : known) {
        if (other != kFashionMnist) names.push_back(other);
      }
      const std::string close = ClosestName(name, names);
      return FieldError(
          "name", absl::StrCat("is ", Quote(name), ", which is not a data set that the daemon knows; ",
                               close.empty() ? "" : absl::StrCat("did you mean '", close, "'? "),
                               "known: ", absl::StrJoin(names, ", "), ". A subfolder of a data folder (",
                               data_folders_.empty() ? "there are none; --data-folder gives one"
                                                     : absl::StrJoin(data_folders_, ", "),
                               ") with MNIST's four IDX files is a data set of its own name"));
    }
    *resolved.mutable_idx() = FilesOf(found->second);
  }
  if (!resolved.has_idx()) return resolved;

  v1::IdxSource* idx = resolved.mutable_idx();
  FieldViolations violations;
  const auto resolve = [&](const char* field, std::string* path, bool required) {
    if (path->empty()) {
      if (required) violations.Add(absl::StrCat("idx.", field), "is required: the path of an IDX file");
      return;
    }
    absl::StatusOr<std::string> inside = ResolvePath(*path);
    if (inside.ok()) {
      *path = *std::move(inside);
    } else {
      violations.Add(spec.name().empty() ? absl::StrCat("idx.", field) : "name", inside.status().message());
    }
  };
  resolve("train_images", idx->mutable_train_images(), true);
  resolve("train_labels", idx->mutable_train_labels(), true);
  resolve("validation_images", idx->mutable_validation_images(), !idx->validation_labels().empty());
  resolve("validation_labels", idx->mutable_validation_labels(), !idx->validation_images().empty());
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  return resolved;
}

absl::StatusOr<DatasetInfo> DatasetCatalog::Describe(const v1::DatasetSpec& resolved) const {
  const std::string key = resolved.SerializeAsString();
  const std::string files = Fingerprint(resolved);
  {
    MutexLock lock(&mutex_);
    const auto found = described_.find(key);
    if (found != described_.end() && found->second.files == files) return found->second.info;
  }
  absl::StatusOr<DatasetInfo> info = DescribeDataset(resolved);
  MutexLock lock(&mutex_);
  if (described_.size() >= kMaxDescribed) described_.clear();
  described_.insert_or_assign(key, Described{files, info});
  return info;
}

v1::Dataset DatasetCatalog::DescribeNamed(const std::string& name, const std::string& folder) const {
  v1::Dataset dataset;
  dataset.set_name(absl::StrCat("datasets/", name));
  dataset.set_location(folder);
  if (name == kFashionMnist) {
    dataset.set_description(
        "70,000 grey images of clothes, 28 by 28 pixels, in 10 classes (Zalando Research, 2017).");
    for (const char* class_name : kFashionMnistClasses) dataset.add_class_names(class_name);
  } else {
    dataset.set_description(absl::StrCat("Images in IDX files in ", folder, "."));
  }
  if (folder.empty()) {
    dataset.set_problem(FashionMnistMissing(data_folders_));
    return dataset;
  }
  v1::DatasetSpec spec;
  spec.set_name(name);
  absl::StatusOr<DatasetInfo> info = absl::UnknownError("");
  absl::StatusOr<v1::DatasetSpec> resolved = Resolve(spec);
  info = resolved.ok() ? Describe(*resolved) : resolved.status();
  if (!info.ok()) {
    dataset.set_problem(std::string(info.status().message()));
    return dataset;
  }
  for (const int64_t extent : info->shape.extents()) dataset.add_shape(extent);
  dataset.set_classes(info->classes);
  dataset.set_train_samples(info->train_samples);
  dataset.set_validation_samples(info->validation_samples);
  if (name == kFashionMnist && info->classes != 10) dataset.clear_class_names();
  return dataset;
}

std::vector<v1::Dataset> DatasetCatalog::List() const {
  std::map<std::string, std::string> known = Find();
  known.emplace(kFashionMnist, "");
  std::vector<v1::Dataset> datasets;
  for (const auto& [name, folder] : known) datasets.push_back(DescribeNamed(name, folder));
  return datasets;
}

}  // namespace tandem
